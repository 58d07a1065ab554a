import type { Logger } from 'pino'
import { MooringError } from '../crds/errors.ts'
import type { CommandLine } from './command-line.ts'
import { createLog, type LogSettings } from './log.ts'

const EXIT_FAILED = 1
/** How long a start that is asked to stop may take to end. */
const GIVE_UP_MS = 5_000

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
   * `stopping` aborts when the process is asked to stop before it is up: end what was started and throw.
   * @throws MooringError whose message is a sentence for whoever started it
   */
  readonly start: (settings: S, log: Logger, stopping: AbortSignal) => Promise<Running>
  /** Exit code of a start that failed so; 1 when absent or undefined. */
  readonly exitCodeOf?: (error: MooringError) => number | undefined
}

/**
 * The life of a component's process: settings, start, then until SIGTERM or SIGINT. A wrong setting ends it with a sentence and exit 2,
 * a start that fails with a sentence and exit 1, and a stop with exit 0.
 */
export async function runProgram<S extends LogSettings>({ parse, start, exitCodeOf }: Program<S>): Promise<void> {
  const settings = settingsOf(parse)
  // Heard from the first moment on: a start that is cut off would leave what it has started.
  const stopping = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stopping.abort())
  const giveUp = () => setTimeout(() => process.exit(0), GIVE_UP_MS).unref()
  stopping.signal.addEventListener('abort', giveUp)
  try {
    const running = await start(settings, createLog(settings), stopping.signal)
    stopping.signal.removeEventListener('abort', giveUp)
    if (running.message !== undefined) process.stdout.write(running.message)
    live(running, stopping.signal)
  } catch (error) {
    if (stopping.signal.aborted) process.exit(0)
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
  try {
    await task.work(settings, createLog(settings))
  } catch (error) {
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

function live(running: Running, stopping: AbortSignal): void {
  let ending: Promise<void> | undefined
  const stop = (code: number) => {
    ending ??= running.stop().then(() => process.exit(code))
  }
  if (stopping.aborted) stop(0)
  else stopping.addEventListener('abort', () => stop(0), { once: true })
  running.ended?.catch((error: unknown) => {
    process.stderr.write(`mooring: ${error instanceof Error ? error.message : String(error)}\n`)
    stop(EXIT_FAILED)
  })
}
