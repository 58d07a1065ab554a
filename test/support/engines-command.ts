import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const PROGRAM = fileURLToPath(new URL('../../embedded/engines/engines-cli.ts', import.meta.url))

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface EnginesCommand {
  readonly cache: string
  /** Directories of the programs that it finds. Default: those of this process. */
  readonly path?: string
  /** Kills the command, as a lost terminal would. */
  readonly signal?: AbortSignal
}

/** Runs `npm run engines` with these arguments. */
export function runEngines(
  args: readonly string[],
  { cache, path = process.env.PATH ?? '', signal }: EnginesCommand,
): Promise<Ended> {
  const env = { ...process.env, MOORING_ENGINES_CACHE: cache, PATH: path }
  const { promise, resolve } = Promise.withResolvers<Ended>()
  const child = execFile(process.execPath, [PROGRAM, ...args], { env }, (_error, stdout, stderr) => {
    resolve({ code: child.exitCode, signal: child.signalCode, stdout, stderr })
  })
  signal?.addEventListener('abort', () => child.kill('SIGKILL'))
  return promise
}
