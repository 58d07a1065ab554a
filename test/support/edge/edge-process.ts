import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { MeshFixture } from './mesh-edges.ts'
import { ENDPOINT } from './mesh-edges.ts'

const MAIN = fileURLToPath(new URL('../../../edge/main.ts', import.meta.url))

/** Process of `edge/main.ts`, started as its pod does, on free ports of this machine. */
export interface EdgeProcess extends AsyncDisposable {
  readonly name: string
  readonly pid: number
  readonly dataDir: string
  readonly ports: Readonly<Record<'ssh' | 'http' | 'https' | 'mesh', number>>
  readonly metricsPort: number
  /** Returns its log so far. */
  readonly logged: () => string
  kill(signal: NodeJS.Signals): void
  readonly exited: Promise<number | null>
}

interface Options {
  readonly name: string
  readonly kubeconfig: string
  /** Directory that outlives its container; default: a new one. */
  readonly dataDir?: string
  readonly metricsPort: number
  readonly drainSeconds?: number
}

export async function startEdgeProcess(fixture: MeshFixture, options: Options): Promise<EdgeProcess> {
  const { name, kubeconfig, metricsPort, drainSeconds = 8 } = options
  const dataDir = options.dataDir ?? (await mkdtemp(join(fixture.directory, 'data-')))
  const settings = {
    ...{ MOORING_ENDPOINT: ENDPOINT, MOORING_LISTEN: '127.0.0.1', MOORING_LOG_FORMAT: 'json', MOORING_LOG_LEVEL: 'debug' },
    ...{ MOORING_SSH_PORT: 'auto', MOORING_HTTP_PORT: 'auto', MOORING_HTTPS_PORT: 'auto', MOORING_MESH_PORT: 'auto' },
    ...{
      MOORING_HOST_KEYS: fixture.hostKeyFiles,
      MOORING_MESH_FILES: fixture.meshFiles,
      MOORING_JOURNAL_FILES: fixture.directory,
    },
    ...{ MOORING_DATA_DIR: dataDir, MOORING_METRICS_PORT: String(metricsPort), MOORING_DRAIN_SECONDS: String(drainSeconds) },
  }
  const child = spawn(process.execPath, [MAIN], {
    env: { PATH: process.env.PATH, KUBECONFIG: kubeconfig, POD_NAME: name, ...settings },
    stdio: ['ignore', 'inherit', 'pipe'],
  })
  let logged = ''
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve))
  const lines = createInterface(child.stderr)
  const started = new Promise<EdgeProcess['ports']>((resolve, reject) => {
    lines.on('line', (line) => {
      logged += `${line}\n`
      if (line.includes('"edge started"')) resolve(JSON.parse(line) as EdgeProcess['ports'])
    })
    void exited.then((code) => reject(new Error(`the edge has ended with ${code ?? 'a signal'}: ${logged}`)))
  })
  const ports = await started
  return {
    ...{ name, pid: child.pid ?? 0, dataDir, ports, metricsPort, exited },
    logged: () => logged,
    kill: (signal) => void child.kill(signal),
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGKILL')
        await once(child, 'exit')
      }
    },
  }
}
