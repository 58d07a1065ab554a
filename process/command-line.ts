import { type Command, CommanderError } from 'commander'

/** What a command line asks for. */
export type CommandLine<T> =
  | { readonly ok: T }
  /** Nothing to do: `text` goes to stdout when `exit` is 0 (the help), else to stderr (one sentence a line). */
  | { readonly exit: 0 | 2; readonly text: string }

/**
 * Reads the flags of `program` from the arguments after its name. Pure: prints nothing and ends nothing. Unknown flags, missing values
 * and stray arguments give a sentence.
 */
export function readFlags<T extends object>(program: Command, argv: readonly string[]): CommandLine<T> {
  let help = ''
  program
    .helpOption('--help', 'shows this and ends')
    .allowExcessArguments(false)
    .exitOverride()
    .configureOutput({ writeOut: (text) => void (help += text), writeErr: () => undefined, getOutHelpWidth: () => 120 })
  try {
    return { ok: program.parse(argv, { from: 'user' }).opts<T>() }
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode === 0) return { exit: 0, text: help.trimEnd() }
    const complaint = error.message
      .replace(/^error: /, '')
      .replace(/\s+/g, ' ')
      .replace(/\.$/, '')
    return { exit: 2, text: `mooring: ${complaint}; ${program.name()} --help lists every setting.` }
  }
}

/** An empty environment variable counts as unset. */
export const nonEmpty = (text: string | undefined): string | undefined => (text === '' ? undefined : text)
