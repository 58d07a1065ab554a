import { Buffer } from 'node:buffer'
import { type Fields, STRIDE } from './fields.ts'
import type { Modifications } from './modifications.ts'
import { DATE, DROP, HOST, PLAIN, SET_COOKIE, VISITOR_ADDRESS } from './names.ts'

const NONE: readonly string[] = []
const COMMON = new Set(['close', 'keep-alive', 'upgrade'])

/** The names in a Connection field that mean fields, which go no further than here (RFC 9110, section 7.6.1). */
export function hopByHopFields(connection: readonly string[]): readonly string[] {
  if (connection.length === 0 || (connection.length === 1 && COMMON.has(connection[0] ?? ''))) return NONE
  return connection.filter((name) => !COMMON.has(name))
}

/** What decides which fields of a message are passed on. */
export interface ForwardingRules {
  /** Names from {@link hopByHopFields}. */
  readonly hops: readonly string[]
  readonly modifications: Modifications
  /** Whether the sender is a trusted balancer, which may name the visitor's address. */
  readonly trusted: boolean
}

/**
 * Whether the field at this place is passed on. Host always is, whatever Connection says. A Set-Cookie is, if nothing else is wrong with it: its value is another
 * matter.
 */
export function isKept({ text, at }: Fields, field: number, { hops, modifications, trusted }: ForwardingRules): boolean {
  const kind = at[field + 4]
  if (kind === HOST) return true
  if (kind === VISITOR_ADDRESS ? !trusted : kind !== PLAIN && kind !== SET_COOKIE && kind !== DATE) return false
  if (hops.length === 0 && modifications.removed === undefined) return true
  return isWanted(text.slice(at[field], at[field + 1]), hops, modifications)
}

function isWanted(name: string, hops: readonly string[], { removed }: Modifications): boolean {
  return removed?.kindOf(Buffer.from(name, 'latin1'), 0, name.length) !== DROP && !hops.includes(name.toLowerCase())
}

/** Where the line of the field at this place ends. */
export const lineEnd = ({ text, at }: Fields, field: number): number => at[field + STRIDE] ?? text.length

/** The lines that are passed on, as they are: runs of them are taken in one piece. `from`: where the first run begins. */
export function keptLines(fields: Fields, from: number, rules: ForwardingRules): string {
  const { text, at } = fields
  let out = ''
  let run = from
  for (let field = 0; field < at.length; field += STRIDE) {
    if (isKept(fields, field, rules)) continue
    const start = at[field] ?? 0
    if (start > run) out += text.slice(run, start)
    run = lineEnd(fields, field)
  }
  return run === 0 ? text : out + text.slice(run)
}
