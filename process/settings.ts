import { Command, Option, CommanderError } from 'commander'
import type { z } from 'zod'

type Rule = z.ZodType<unknown, string>

/** Setting of a program: the flag `--data-dir` and the variable `MOORING_DATA_DIR` are the setting `dataDir`. */
export interface Setting<R extends Rule = Rule> {
  /** Parses the text of the flag or the variable; the message completes the sentence "--flag must be …". */
  readonly rule: R
  /** Placeholder of the value in the help, as in `--data-dir <path>`; in brackets when the value is optional and defaults to `on`. */
  readonly value: `<${string}>` | `[${string}]`
  readonly about: string
  /** Default as text; absent when an unset flag has its own meaning. */
  readonly initial?: string
  /** Whether the flag may be repeated; the texts are joined with blanks. */
  readonly repeated?: boolean
}
export type SettingsTable = Readonly<Record<string, Setting>>

/** Parsed settings. Paths are not resolved: relative paths are relative to the working directory. */
export type SettingsOf<T extends SettingsTable> = {
  readonly [K in keyof T]: T[K] extends { initial: string } ? z.output<T[K]['rule']> : z.output<T[K]['rule']> | undefined
}

export const setting = <R extends Rule>(rule: R, value: Setting['value'], about: string) => ({ rule, value, about })

export const withDefault = <R extends Rule>(rule: R, value: Setting['value'], [initial, about]: [string, string]) => ({
  rule,
  value,
  about,
  initial,
})

export interface ProgramSettings<T extends SettingsTable> {
  /** Command that runs the program, e.g. `npm start --`. */
  readonly program: string
  readonly description: string
  readonly table: T
  /** Returns one sentence for each conflict between settings that are valid by themselves. */
  readonly check?: (settings: SettingsOf<T>) => readonly string[]
}

type Environment = Readonly<Record<string, string | undefined>>

const kebab = (name: string): string => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
export const flagOf = (name: string): string => `--${kebab(name)}`
const variableOf = (name: string): string => `MOORING_${kebab(name).replaceAll('-', '_').toUpperCase()}`

/**
 * Creates the parser of a program's settings. It reads the arguments after the program's name and the environment. A flag overrides its
 * variable, and an empty variable counts as unset. The parser is pure.
 */
export function createSettingsParser<T extends SettingsTable>(
  about: ProgramSettings<T>,
): (argv: readonly string[], env: Environment) => CommandLine<SettingsOf<T>> {
  const { table, check = () => [] } = about
  const entries = Object.entries<Setting>(table)

  return function parseSettings(argv, env) {
    const flags = readFlags<Partial<Record<string, string>>>(commandOf(about), argv)
    if ('exit' in flags) return flags
    const wrong: string[] = []
    const values: Record<string, unknown> = {}
    for (const [name, { rule, initial }] of entries) {
      const text = flags.ok[name] ?? nonEmpty(env[variableOf(name)]) ?? initial
      if (text === undefined) continue
      const parsed = rule.safeParse(text)
      if (parsed.success) values[name] = parsed.data
      else wrong.push(sentence(name, parsed.error, { text, flag: flags.ok[name] !== undefined }))
    }
    // Each value was parsed by the rule that determines its type.
    const settings = values as SettingsOf<T>
    if (wrong.length === 0) wrong.push(...check(settings))
    return wrong.length === 0 ? { ok: settings } : { exit: 2, text: wrong.join('\n') }
  }
}

function sentence(name: string, error: z.ZodError, given: { text: string; flag: boolean }): string {
  const what = given.flag ? flagOf(name) : `${flagOf(name)} (${variableOf(name)} in the environment)`
  return `mooring: ${what} must be ${error.issues[0]?.message ?? 'valid'}, not ${JSON.stringify(withoutLogin(given.text))}.`
}

/** Returns the text without the user and password of a URL in it, which must not get into a log. A key of AWS may have a slash. */
const withoutLogin = (text: string): string => text.replace(/(?<=:\/\/)\S*@/g, '…@')

/** Returns a sentence for each port that two settings share. Otherwise the start would fail halfway, with an error that names neither flag. */
export function samePorts(settings: Readonly<Record<string, unknown>>): readonly string[] {
  const seen = new Map<unknown, string>()
  const wrong: string[] = []
  for (const name of Object.keys(settings).filter((name) => /port$/i.test(name))) {
    const value = settings[name]
    const other = seen.get(value)
    if (typeof value === 'number' && other)
      wrong.push(`mooring: ${flagOf(name)} must be another port than ${other}, not ${value} too.`)
    seen.set(value, flagOf(name))
  }
  return wrong
}

function commandOf({ program, description, table }: Omit<ProgramSettings<SettingsTable>, 'check'>): Command {
  const command = new Command(program).usage('[settings]').description(description)
  for (const [name, setting] of Object.entries(table)) command.addOption(optionOf(name, setting))
  return command
}

function optionOf(name: string, { value, about, initial, repeated }: Setting): Option {
  const option = new Option(`${flagOf(name)} ${value}`, `${about} (${initial ? `default ${initial}; ` : ''}${variableOf(name)})`)
  if (value.startsWith('[')) option.preset('on')
  if (repeated) option.argParser((text: string, before: string | undefined) => (before ? `${before} ${text}` : text))
  return option
}

/** Result of parsing a command line: the flags, or an exit. */
export type CommandLine<T> =
  | { readonly ok: T }
  /** Exit without work: `text` goes to stdout when `exit` is 0 (help), otherwise to stderr (one sentence per line). */
  | { readonly exit: 0 | 2; readonly text: string }

/**
 * Parses the flags of `program` from the arguments after its name. Pure: prints nothing and does not exit. Unknown flags, missing values
 * and extra arguments give exit 2 with a sentence.
 */
export function readFlags<T extends object>(program: Command, argv: readonly string[]): CommandLine<T> {
  let help = ''
  program
    .helpOption('--help', 'show this help and exit')
    .allowExcessArguments(false)
    .exitOverride()
    .configureOutput({ writeOut: (text) => void (help += text), writeErr: () => undefined, getOutHelpWidth: () => 120 })
  try {
    return { ok: program.parse(argv, { from: 'user' }).opts<T>() }
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode === 0) return { exit: 0, text: help.trimEnd() }
    const problem = error.message
      .replace(/^error: /, '')
      .replace(/\s+/g, ' ')
      .replace(/\.$/, '')
    return { exit: 2, text: `mooring: ${problem}; ${program.name()} --help lists every setting.` }
  }
}

/** Returns the text, or undefined when it is empty: an empty environment variable counts as unset. */
export const nonEmpty = (text: string | undefined): string | undefined => (text === '' ? undefined : text)
