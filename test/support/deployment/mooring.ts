import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { tmpdir } from 'node:os'
import { shareBlanks, scratch } from '../postgresql/disks.ts'
import type { Answer, Body } from '../api/answers.ts'
import { createHttpsClient } from '../api/https-client.ts'
import type { Installation, StartedInstallation } from './installation.ts'
import { readMotors } from './served-motors.ts'
import { patient } from '../patience.ts'

const MAIN = fileURLToPath(new URL('../../../embedded/main.ts', import.meta.url))
const START_MS = patient(60_000)
/** All ports of Mooring: another Mooring on this machine may use a default one. */
export const PORTS = ['shared', 'dedicated', 'shared-http', 'dedicated-http', 'metrics', 'ssh', 'http', 'https']

/** Content of the ready file. */
export interface Ready {
  readonly sharedUrl: string
  readonly dedicatedUrl: string
  readonly sharedHttpUrl: string | null
  readonly dedicatedHttpUrl: string | null
  readonly token: string
  readonly ca: string
  readonly region: string
  readonly metricsUrl: string
  readonly domain: string
  readonly regionId: number
  readonly sshHost: string
  readonly sshPort: number
  readonly httpPort: number
  readonly httpsPort: number
  readonly dashboardUrl: string
}

/** Embedded Mooring in its own process and data directory, on free ports. */
export interface Mooring extends AsyncDisposable {
  readonly ready: Ready
  readonly process: ChildProcess
  readonly dataDir: string
  call(
    method: string,
    path: string,
    options?: { body?: unknown; token?: string; headers?: Record<string, string> },
  ): Promise<Answer>
  /** Returns stdout and stderr so far. */
  output(): string
}

/** Settings of {@link startMooring}. */
export interface MooringOptions {
  readonly dataDir?: string
  readonly args?: readonly string[]
  /** Arguments for Node itself. */
  readonly node?: readonly string[]
  /** Command that runs Node, for another namespace of the machine. */
  readonly inside?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** File that receives a copy of stderr, which has the log. Stdout has the welcome message, with a token. */
  readonly logFile?: string
}

/** Starts Mooring and waits for its ready file. `dataDir` is removed at the end unless the caller passed it. */
export async function startMooring(options: MooringOptions = {}): Promise<Mooring> {
  const own = options.dataDir === undefined
  const dataDir = options.dataDir ?? (await newDataDir())
  const readyFile = join(dataDir, 'ready.json')
  await rm(readyFile, { force: true })
  const ports = freePorts(...PORTS)
  const settings = ['--data-dir', dataDir, '--ready-file', readyFile, ...ports, ...(options.args ?? [])]
  const [file = '', ...args] = [...(options.inside ?? []), process.execPath, ...(options.node ?? []), MAIN, ...settings]
  const child = spawn(file, args, { env: { ...process.env, ...options.env }, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  const copy = options.logFile === undefined ? undefined : createWriteStream(options.logFile)
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  if (copy) child.stderr.pipe(copy)
  const ended = once(child, 'exit')

  async function dispose(): Promise<void> {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGTERM')
      await ended
    }
    copy?.end()
    // Servers that outlive a killed Mooring still write to it.
    if (own) await rm(dataDir, { recursive: true, force: true, maxRetries: 5 })
  }

  const ready = await untilReady(readyFile, child, () => output).catch(async (error: unknown) => {
    await dispose()
    throw error
  })
  const client = createHttpsClient(await readFile(ready.ca, 'utf8'))
  return {
    ready,
    process: child,
    dataDir,
    output: () => output,
    async call(method, path, { body, token = ready.token, headers = {} } = {}) {
      const text = body === undefined ? undefined : JSON.stringify(body)
      const type = text === undefined ? {} : { 'Content-Type': 'application/json' }
      const { text: answer, ...rest } = await client.send(new URL(path, ready.sharedUrl).href, {
        method,
        headers: { Authorization: `Bearer ${token}`, ...type, ...headers },
        body: text,
      })
      return { status: rest.status, headers: rest.headers, body: JSON.parse(answer) as Body }
    },
    async [Symbol.asyncDispose]() {
      client[Symbol.dispose]()
      await dispose()
    },
  }
}

/** Creates a data directory in which servers are copies of prepared ones, as after the first server of a version. */
async function newDataDir(): Promise<string> {
  const dataDir = await mkdtemp(join(await scratch(), 'mooring-'))
  await mkdir(join(dataDir, 'servers'), { mode: 0o700 })
  await shareBlanks(join(dataDir, 'servers'))
  return dataDir
}

async function untilReady(file: string, child: ChildProcess, output: () => string): Promise<Ready> {
  const deadline = Date.now() + START_MS
  while (Date.now() < deadline) {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(`Mooring ended: ${output()}`)
    try {
      return JSON.parse(await readFile(file, 'utf8')) as Ready
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
  throw new Error(`Mooring did not become ready: ${output()}`)
}

/** Starts one embedded Mooring for the whole suite. */
export async function startEmbeddedInstallation(): Promise<StartedInstallation> {
  const outside = await mkdtemp(join(tmpdir(), 'mooring-suite-'))
  const logFile = join(outside, 'log')
  const args = ['--failed-auth-per-minute', '1000000', '--log-level', 'debug', '--compatible-motors']
  const mooring = await startMooring({ logFile, args })
  const { ready, dataDir } = mooring
  const started = {
    kind: 'embedded',
    sharedUrl: ready.sharedUrl,
    dedicatedUrl: ready.dedicatedUrl,
    ca: await readFile(ready.ca, 'utf8'),
    region: { id: ready.region, name: 'local' },
    motor: 'postgresql-15.4.0',
    issuer: JSON.parse(await readFile(join(dataDir, 'issuer.json'), 'utf8')) as Installation['issuer'],
    metricsUrls: [ready.metricsUrl],
    logFiles: [logFile],
  } as const
  return {
    installation: { ...started, motors: await readMotors(started) },
    async [Symbol.asyncDispose]() {
      await mooring[Symbol.asyncDispose]()
      await rm(outside, { recursive: true, force: true })
    },
  }
}

/** Exit code and output of an ended Mooring. */
export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Embedded Mooring whose start may fail. */
export interface MooringRun {
  readonly process: ChildProcess
  readonly ended: Promise<Ended>
}

/** Runs an embedded Mooring with exactly these arguments, and these variables besides those of this process. */
export function runMooring(args: readonly string[], env: Readonly<Record<string, string>> = {}): MooringRun {
  const child = spawn(process.execPath, [MAIN, ...args], { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) child[name].on('data', (chunk: Buffer) => (output[name] += chunk.toString()))
  const ended = new Promise<Ended>((resolve) => child.once('close', (code) => resolve({ code, ...output })))
  return { process: child, ended }
}

/** Returns the arguments that set each of these ports to `auto`. */
export const freePorts = (...names: readonly string[]): readonly string[] => names.flatMap((name) => [`--${name}-port`, 'auto'])
