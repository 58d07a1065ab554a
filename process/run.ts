import type { Logger } from 'pino'
import { MooringError } from '../shared/errors.ts'
import type { CommandLine } from './command-line.ts'
import { createEnding, type Ending, type Life } from './life.ts'
import { createLog, type LogSettings } from './log.ts'

const EXIT_FAILED = 1

type Parse<S> = (argv: readonly string[], env: NodeJS.ProcessEnv) => CommandLine<S>

/** A running component. */
export interface Running {
  /** What a person is told, on stdout. */
  readonly message?: string
  /** Rejects when it can no longer do its work; the process then ends with exit 1. Never resolves before `stop` was called. */
  readonly ended?: Promise<void>
  /** Stops everything that was started. */
  stop(): Promise<void>
}

export interface Program<S extends LogSettings> {
  readonly parse: Parse<S>
  /**
   * Asked to stop before it is up, it ends what it has started and throws.
   * @throws MooringError whose message is a sentence for whoever started it
   */
  readonly start: (settings: S, log: Logger, life: Life) => Promise<Running>
  /** Milliseconds from being asked to stop to the end of the process, however far it has got by then. */
  readonly stopMs: number
  /** Exit code of a start that failed so; 1 when absent or undefined. */
  readonly exitCodeOf?: (error: MooringError) => number | undefined
}

/**
 * The life of a component's process: settings, start, then until SIGTERM or SIGINT. A wrong setting ends it with a sentence and exit 2, a
 * start that fails with a sentence and exit 1, a stop with exit 0, also one that took too long. A second signal ends it at once, with
 * 128 and the signal's number.
 */
export async function runProgram<S extends LogSettings>({ parse, start, stopMs, exitCodeOf }: Program<S>): Promise<void> {
  const settings = settingsOf(parse)
  const ending = createEnding(stopMs)
  try {
    const running = await start(settings, createLog(settings), ending)
    if (running.message !== undefined && !ending.stopping.aborted) process.stdout.write(running.message)
    live(running, ending)
  } catch (error) {
    if (ending.stopping.aborted) {
      ending.end(0)
      return
    }
    fail(error, exitCodeOf)
  }
}

/** As {@link runProgram}, of a process that ends by itself, with exit 0, once `work` is done. */
export async function runTask<S extends LogSettings>(task: {
  readonly parse: Parse<S>
  /** @throws MooringError whose message is a sentence for whoever started it */
  readonly work: (settings: S, log: Logger) => Promise<void>
}): Promise<void> {
  const settings = settingsOf(task.parse)
  const log = createLog(settings)
  try {
    await task.work(settings, log)
  } catch (error) {
    // The sentence alone may be too little for whoever has to mend it.
    if (error instanceof MooringError && error.cause !== undefined) log.error({ err: error }, 'the task failed')
    fail(error)
  }
}

function settingsOf<S>(parse: Parse<S>): S {
  const parsed = parse(process.argv.slice(2), process.env)
  if ('ok' in parsed) return parsed.ok
  const stream = parsed.exit === 0 ? process.stdout : process.stderr
  stream.write(`${parsed.text}\n`)
  return process.exit(parsed.exit)
}

function fail(error: unknown, exitCodeOf?: (error: MooringError) => number | undefined): never {
  const sentence = sentenceOf(error)
  if (sentence === undefined) throw error
  process.stderr.write(`mooring: ${sentence}\n`)
  process.exit((error instanceof MooringError ? exitCodeOf?.(error) : undefined) ?? EXIT_FAILED)
}

/** Our own errors, and what the system refused, such as room on a disk: its messages name the call and the path. */
function sentenceOf(error: unknown): string | undefined {
  if (error instanceof MooringError) return error.message
  return error instanceof Error && 'syscall' in error ? error.message : undefined
}

function live(running: Running, ending: Ending): void {
  let stopped: Promise<void> | undefined
  const stop = (code: number) => {
    stopped ??= running.stop().then(
      () => ending.end(code),
      (error: unknown) => ending.force(EXIT_FAILED, `the stop failed: ${textOf(error)}`),
    )
  }
  if (ending.stopping.aborted) stop(0)
  else ending.stopping.addEventListener('abort', () => stop(0), { once: true })
  running.ended?.catch((error: unknown) => {
    process.stderr.write(`mooring: ${textOf(error)}\n`)
    ending.startClock(EXIT_FAILED)
    stop(EXIT_FAILED)
  })
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
