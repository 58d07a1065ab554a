import { type Logger, type LoggerOptions, pino, stdTimeFunctions } from 'pino'
import { MooringError } from '../shared/errors.ts'
import { type CommandLine, setting, type SettingsOf, withDefault } from './settings.ts'
import { createProcessExit, type ProcessExit, type ProcessLifetime } from './process-lifetime.ts'
import { oneOf } from './setting-rules.ts'

const EXIT_FAILED = 1

type Parse<S> = (argv: readonly string[], env: NodeJS.ProcessEnv) => CommandLine<S>

/** A running component. */
export interface Running {
  /** Text for stdout when the component is up. */
  readonly message?: string
  /** Rejects when the component cannot continue; the process then stops and exits with 1. Does not resolve before `stop` is called. */
  readonly ended?: Promise<void>
  /** Stops all parts of the component. */
  stop(): Promise<void>
}

/** Program that runs until it receives a signal. */
export interface Program<S extends LogSettings> {
  readonly parse: Parse<S>
  /**
   * Starts the component. When `lifetime.stopping` aborts before the component is up, it stops all started parts and throws.
   * @throws MooringError whose message is a sentence for the administrator
   */
  readonly start: (settings: S, log: Logger, lifetime: ProcessLifetime) => Promise<Running>
  /** Maximum time from the signal to the exit of the process, in milliseconds. */
  readonly stopMs: number
  /** Returns the exit code for an error of `start`; 1 when absent or undefined. */
  readonly exitCodeOf?: (error: MooringError) => number | undefined
}

/**
 * Runs a component's process: reads settings, starts, and stops at SIGTERM or SIGINT. Exit codes: 2 for an invalid setting and 1 for a
 * failed start, both with a sentence on stderr; 0 for a stop, also when it exceeded its deadline. A second signal exits at once, with 128
 * plus the signal's number.
 */
export async function runProgram<S extends LogSettings>({ parse, start, stopMs, exitCodeOf }: Program<S>): Promise<void> {
  const settings = settingsOf(parse)
  const exit = createProcessExit(stopMs)
  try {
    const running = await start(settings, createLog(settings), exit)
    if (running.message !== undefined && !exit.stopping.aborted) process.stdout.write(running.message)
    stopOnSignal(running, exit)
  } catch (error) {
    if (exit.stopping.aborted) {
      exit.end(0)
      return
    }
    fail(error, exitCodeOf)
  }
}

/** Runs a process like {@link runProgram} that exits with 0 once `work` is done. */
export async function runTask<S extends LogSettings>(task: {
  readonly parse: Parse<S>
  /** @throws MooringError whose message is a sentence for the administrator */
  readonly work: (settings: S, log: Logger) => Promise<void>
}): Promise<void> {
  const settings = settingsOf(task.parse)
  const log = createLog(settings)
  try {
    await task.work(settings, log)
  } catch (error) {
    // The log has the cause, which the sentence on stderr leaves out.
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

/** Returns the sentence for errors of ours and of system calls, e.g. a full disk: messages of the latter name the call and the path. */
function sentenceOf(error: unknown): string | undefined {
  if (error instanceof MooringError) return error.message
  return error instanceof Error && 'syscall' in error ? error.message : undefined
}

/** Stops the component at a signal or when it ends by itself. */
function stopOnSignal(running: Running, exit: ProcessExit): void {
  let stopped: Promise<void> | undefined
  const stop = (code: number) => {
    stopped ??= running.stop().then(
      () => exit.end(code),
      (error: unknown) => exit.force(EXIT_FAILED, `the stop failed: ${textOf(error)}`),
    )
  }
  if (exit.stopping.aborted) stop(0)
  else exit.stopping.addEventListener('abort', () => stop(0), { once: true })
  running.ended?.catch((error: unknown) => {
    process.stderr.write(`mooring: ${textOf(error)}\n`)
    exit.startDeadline(EXIT_FAILED)
    stop(EXIT_FAILED)
  })
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Settings of the log, which every program has. */
export const LOG_SETTINGS = {
  logLevel: withDefault(oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']), '<level>', [
    'info',
    'least severe log line',
  ]),
  logFormat: setting(oneOf(['pretty', 'json']), '<format>', 'pretty or json; default: pretty on a terminal, else json'),
} as const
export type LogSettings = SettingsOf<typeof LOG_SETTINGS>

/** Form of JSON lines that collectors of logs read without a table: the level by its name, and the time as RFC 3339 in UTC. */
export const JSON_LINES: LoggerOptions = { formatters: { level: (level) => ({ level }) }, timestamp: stdTimeFunctions.isoTime }

/** Creates the structured log on stderr. JSON lines are written before the call returns, so none is lost when the process exits. */
function createLog({ logLevel, logFormat }: LogSettings): Logger {
  const format = logFormat ?? (process.stderr.isTTY ? 'pretty' : 'json')
  if (format === 'json') return pino({ ...JSON_LINES, level: logLevel }, pino.destination({ fd: 2, sync: true }))
  return pino({
    level: logLevel,
    transport: { target: 'pino-pretty', options: { destination: 2, colorize: process.stderr.isTTY } },
  })
}
