import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const MAIN = fileURLToPath(new URL('../../embedded/main.ts', import.meta.url))
const START_MS = 60_000

export interface Ready {
  readonly sharedUrl: string
  readonly dedicatedUrl: string
  readonly token: string
  readonly ca: string
  readonly region: string
  readonly metricsUrl: string
}

/** What the tests read of answers: success has `data`, refusal `error`, and a test knows which it asked for. */
export interface Body {
  readonly msg: string
  readonly data: { readonly instance: Instance }
  readonly error: { readonly code: string; readonly details: readonly { readonly field: string; readonly message: string }[] }
}

export interface Instance {
  readonly id: string
  readonly name: string
  readonly password: string
  readonly uri: string
  readonly isEnabled: boolean
}

export interface Answer {
  readonly status: number
  readonly headers: NodeJS.Dict<string | string[]>
  readonly body: Body
}

/** A real embedded Mooring of its own, in its own process and data directory, on free ports. */
export interface Mooring extends AsyncDisposable {
  readonly ready: Ready
  readonly process: ChildProcess
  readonly dataDir: string
  call(
    method: string,
    path: string,
    options?: { body?: unknown; token?: string; headers?: Record<string, string> },
  ): Promise<Answer>
  /** What it wrote to stdout and stderr so far. */
  output(): string
}

/** Starts it and waits for its ready file. `dataDir` is removed at the end unless it was given. */
export async function startMooring(
  options: { dataDir?: string; args?: readonly string[]; node?: readonly string[]; env?: Record<string, string> } = {},
): Promise<Mooring> {
  const own = options.dataDir === undefined
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'mooring-')))
  const readyFile = join(dataDir, 'ready.json')
  await rm(readyFile, { force: true })
  const ports = ['shared', 'dedicated', 'shared-http', 'dedicated-http', 'metrics'].flatMap((name) => [`--${name}-port`, 'auto'])
  const child = spawn(
    process.execPath,
    [...(options.node ?? []), MAIN, '--data-dir', dataDir, '--ready-file', readyFile, ...ports, ...(options.args ?? [])],
    {
      env: { ...process.env, ...options.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const ended = once(child, 'exit')
  const ready = await untilReady(readyFile, child, () => output)
  const ca = await readFile(ready.ca, 'utf8')

  async function dispose(): Promise<void> {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGTERM')
      await ended
    }
    if (own) await rm(dataDir, { recursive: true, force: true })
  }

  return {
    ready,
    process: child,
    dataDir,
    output: () => output,
    call: (method, path, call = {}) =>
      send(new URL(path, ready.sharedUrl), {
        method,
        ca,
        token: call.token ?? ready.token,
        headers: call.headers ?? {},
        body: call.body,
      }),
    [Symbol.asyncDispose]: dispose,
  }
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

interface Call {
  readonly method: string
  readonly ca: string
  readonly token: string
  readonly headers: Record<string, string>
  readonly body: unknown
}

function send(url: URL, { method, ca, token, headers, body }: Call): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const req = request(
      url,
      {
        method,
        ca,
        headers: {
          Authorization: `Bearer ${token}`,
          ...(text !== undefined && { 'Content-Type': 'application/json' }),
          ...headers,
        },
      },
      (res) => {
        let answer = ''
        res.setEncoding('utf8')
        res.on('data', (chunk: string) => (answer += chunk))
        res.on('end', () =>
          resolve({
            status: res.statusCode ?? 0,
            headers: res.headers,
            body: JSON.parse(answer) as Body,
          }),
        )
        res.on('error', reject)
      },
    )
    req.on('error', reject)
    req.end(text)
  })
}
