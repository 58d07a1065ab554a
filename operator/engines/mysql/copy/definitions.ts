import { MooringError } from '../../../../shared/errors.ts'
import { EngineCode } from '../../engine.ts'
import { accountOf, quoteName } from '../catalog.ts'

/** Names of the template's database and of its copy. */
export interface Move {
  readonly from: string
  readonly to: string
}

/**
 * Tokens of SQL that matter here: literals, comments and identifiers. An executable comment (`/*!50100 …`) begins like a comment, but its
 * text is code; its opening is a token of its own.
 */
function tokens(sqlMode: string): RegExp {
  const escape = sqlMode.includes('NO_BACKSLASH_ESCAPES') ? '' : String.raw`\\[\s\S]|`
  const literal = (quote: string) =>
    `${quote}(?:${escape}${quote}${quote}|[^${quote}${escape === '' ? '' : String.raw`\\`}])*${quote}`
  const quoted = sqlMode.includes('ANSI_QUOTES') ? '(?<ansi>"(?:""|[^"])*")' : literal('"')
  return new RegExp(
    [
      literal("'"),
      quoted,
      '(?<quoted>`(?:``|[^`])*`)',
      String.raw`/\*M?!\d*`,
      String.raw`/\*[\s\S]*?\*/`,
      String.raw`--(?=\s|$)[^\n]*|#[^\n]*`,
      String.raw`(?<word>[\w$\u0080-\uffff]+)`,
    ].join('|'),
    'gu',
  )
}

/**
 * Replaces the name of the old database by that of the new one where it qualifies another name: `old.t` becomes `new.t`. Literals and
 * comments stay. `sqlMode`: mode under which the text was written. Pure.
 */
export function moveNames(text: string, { from, to }: Move, sqlMode = ''): string {
  return text.replaceAll(tokens(sqlMode), (token: string, ...rest: readonly unknown[]) => {
    const groups = rest.at(-1) as Readonly<Partial<Record<'ansi' | 'quoted' | 'word', string>>>
    const offset = rest.at(-3) as number
    const name = groups.word ?? (groups.quoted ?? groups.ansi)?.slice(1, -1)
    const qualifies = /^\s*\./.test(text.slice(offset + token.length, offset + token.length + 8))
    return name === from && qualifies ? quoteName(to) : token
  })
}

/** Definer at the beginning of a definition that the server has printed. */
const DEFINER =
  /^(CREATE (?:OR REPLACE )?(?:ALGORITHM=\w+ )?)DEFINER=(?:`(?:``|[^`])*`|"(?:""|[^"])*")@(?:`(?:``|[^`])*`|"(?:""|[^"])*")(?= )/

/**
 * Returns the definition of a view, trigger or routine for the new database, with the new tenant as its definer. Without a definer the
 * object would run with the rights of the administrator. Pure.
 * @throws MooringError `engine_failed` when the text has no definer where the server prints it
 */
export function moveDefinition(text: string, move: Move, sqlMode = ''): string {
  if (!DEFINER.test(text)) throw new MooringError(EngineCode.failed, 'a definition of the template has no definer')
  return moveNames(text.replace(DEFINER, `$1DEFINER=${accountOf(move.to)}`), move, sqlMode)
}
