import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { delimiter, join } from 'node:path'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'

/** Returns the environment of a user's shell, without the variables that npm adds. */
function shellEnvironment(): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('npm_') && !name.startsWith('MOORING_'))
  const path = (process.env.PATH ?? '').split(delimiter).filter((folder) => !/node_modules|node-gyp-bin/.test(folder))
  return { ...Object.fromEntries(own), PATH: path.join(delimiter) }
}

const PORTS = ['shared', 'dedicated', 'shared-http', 'dedicated-http', 'metrics'].flatMap((name) => [`--${name}-port`, 'auto'])

/** Working directory, data directory and environment of `npm start`. */
export interface NpmStart {
  readonly directory: string
  readonly dataDir: string
  readonly env?: Readonly<Record<string, string>>
}

/** Runs `npm start` as from a shell until it prints that it is ready, and stops it. Resolves with the seconds until ready. */
export async function npmStart({ directory, dataDir, env = {} }: NpmStart): Promise<number> {
  const started = performance.now()
  const child = spawn('npm', ['start', '--', '--data-dir', dataDir, ...PORTS], {
    cwd: directory,
    env: { ...shellEnvironment(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A process group of its own, so that Ctrl-C reaches npm and Mooring as in a terminal.
    detached: true,
  })
  const ended = once(child, 'exit')
  try {
    await ready(child)
    return (performance.now() - started) / 1_000
  } finally {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGINT')
    await ended
  }
}

async function ready(child: ChildProcess): Promise<void> {
  let output = ''
  await new Promise<void>((resolve, reject) => {
    child.stdout?.on('data', (chunk: Buffer) => {
      output += chunk.toString()
      if (output.includes('Mooring is ready.')) resolve()
    })
    child.stderr?.on('data', (chunk: Buffer) => (output += chunk.toString()))
    child.once('error', reject)
    child.once('exit', () => reject(new Error(`npm start ended: ${output}`)))
  })
}

/** Creates a directory on the disk of the system's temporary files, removed on disposal. */
export async function temporaryDirectory(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'mooring-bench-'))
  return {
    path,
    // Retried, since a killed database server may still write for a moment.
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }),
  }
}

/** Flags that lift quotas and rate limits for a measure. */
export const UNLIMITED = [
  ...['--write-rate', '1000000', '--write-burst', '1000000', '--read-rate', '1000000', '--read-burst', '1000000'],
  ...['--quota-instances', '1000000', '--quota-tunnels', '1000000'],
] as const
