import { type Command, CommanderError } from 'commander'

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
