import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { hasCode, MooringError } from '../../../shared/errors.ts'

/** Code of an error of the `docker` command. The message is its last line on stderr. */
export const DOCKER_FAILED = 'docker_failed'
/** Code of an error about a machine without the `docker` program. */
export const DOCKER_MISSING = 'docker_missing'

/** Time limit of commands that do not run a container, in milliseconds. */
const COMMAND_MS = 30_000
/** Maximum of kept output, in characters; the oldest is dropped. */
const OUTPUT_CHARS = 262_144

export interface RunOptions {
  readonly signal?: AbortSignal | undefined
  /** Time limit in milliseconds, 30 s by default; 0: none. */
  readonly timeoutMs?: number
  /** Whether stdout is shown on our stderr instead of being returned, as the progress of a download. */
  readonly progress?: boolean | undefined
}

/** Client program of Docker, which finds the daemon by DOCKER_HOST or by its own contexts. */
export interface DockerClient {
  /**
   * Runs `docker` with these arguments. @returns stdout, without white space at the end
   * @throws MooringError `docker_missing`, `docker_failed`; the signal's reason when it aborts
   */
  run(args: readonly string[], options?: RunOptions): Promise<string>
  /** Last lines of a container's stdout and stderr together, in order; empty when the container does not exist. */
  logs(container: string, lines: number): Promise<string>
}

const NEVER = new AbortController().signal

/** Command without its arguments, which may be many. */
const nameOf = ([command = '']: readonly string[]): string => `docker ${command}`

/** @param program name or path of the client program */
export function createDockerClient(program = 'docker'): DockerClient {
  /** Runs a command until it ends. @throws MooringError `docker_missing`, `docker_failed` when it takes too long; the signal's reason */
  async function execute(
    args: readonly string[],
    { signal = NEVER, timeoutMs = COMMAND_MS, progress = false }: RunOptions,
  ): Promise<Ended> {
    signal.throwIfAborted()
    const deadline = timeoutMs > 0 ? AbortSignal.timeout(timeoutMs) : NEVER
    const child = spawn(program, args, {
      // In a process group of its own: Ctrl-C in the terminal must not interrupt the commands that stop the containers.
      detached: true,
      stdio: ['ignore', progress ? 2 : 'pipe', 'pipe'],
      signal: AbortSignal.any([signal, deadline]),
      killSignal: 'SIGKILL',
    })
    const output = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const) {
      child[name]?.setEncoding('utf8').on('data', (text: string) => (output[name] = (output[name] + text).slice(-OUTPUT_CHARS)))
    }
    try {
      const [status] = (await once(child, 'close')) as [number | null]
      return { ...output, status }
    } catch (cause) {
      signal.throwIfAborted()
      if (!deadline.aborted) throw missing(cause)
      throw new MooringError(DOCKER_FAILED, `${nameOf(args)} did not end within ${timeoutMs / 1000} s`, { cause })
    }
  }

  const missing = (cause: unknown): unknown =>
    hasCode(cause, 'ENOENT') ? new MooringError(DOCKER_MISSING, `the program ${program} is not installed`, { cause }) : cause

  return {
    async run(args, options = {}) {
      const { status, stdout, stderr } = await execute(args, options)
      if (status === 0) return stdout.trimEnd()
      throw new MooringError(DOCKER_FAILED, lastLine(stderr) ?? `${nameOf(args)} ended with ${status ?? 'a signal'}`)
    },
    async logs(container, lines) {
      const { status, stdout, stderr } = await execute(['logs', '--tail', `${lines}`, container], {})
      return status === 0 ? `${stdout}\n${stderr}` : ''
    },
  }
}

interface Ended {
  /** Exit status; null after a signal. */
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Last line that says something: the client ends some errors with an advice to read its help. */
function lastLine(text: string): string | undefined {
  const lines = text.split('\n').map((line) => line.trim())
  return lines.filter((line) => line !== '' && !/^(See 'docker|Run 'docker)/.test(line)).at(-1)
}
