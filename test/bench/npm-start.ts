import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { delimiter } from 'node:path'

/** Returns the environment of a user's shell, without the variables that npm adds. */
function shellEnvironment(): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('npm_') && !name.startsWith('MOORING_'))
  const path = (process.env.PATH ?? '').split(delimiter).filter((folder) => !/node_modules|node-gyp-bin/.test(folder))
  return { ...Object.fromEntries(own), PATH: path.join(delimiter) }
}

const PORTS = ['shared', 'dedicated', 'shared-http', 'dedicated-http', 'metrics'].flatMap((name) => [`--${name}-port`, 'auto'])

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
