import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { createSecureServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { type MeshFixture, ENDPOINT } from './mesh-edges.ts'
import { KINDS } from '../../../crds/index.ts'
import type { Kind } from '../../../crds/kind.ts'
import { createCa, issueCertificate } from '../../../operator/certificates/local-ca.ts'
import { isStoreError, type Store } from '../../../store/port.ts'

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

/** Starts an edge, and resolves when it listens. @throws Error with its log when it ends before */
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

/** Kubernetes API server in front of a store, for processes with a kubeconfig. It can stop and start again. */
export interface ApiFacade extends AsyncDisposable {
  /** Closes all connections and stops listening. */
  leave(): Promise<void>
  /** Listens again on the same address. */
  comeBack(): Promise<void>
  /** Number of answered reads of Secrets. */
  readonly secretReads: () => readonly string[]
}

const collections = new Map(
  KINDS.map((kind) => [`${kind.group === '' ? '/api' : `/apis/${kind.group}`}/${kind.version}/${kind.plural}`, kind]),
)

interface Asked {
  readonly kind: Kind
  readonly namespace: string | undefined
  readonly name: string | undefined
}

function parse(path: string): Asked | undefined {
  const [, root = '', namespace, plural, name] =
    /^(\/api\/v1|\/apis\/[^/]+\/[^/]+)(?:\/namespaces\/([^/]+))?\/([^/]+)(?:\/([^/]+))?$/.exec(path) ?? []
  const kind = collections.get(`${root}/${plural ?? ''}`)
  return kind && { kind, namespace, name }
}

const labelsOf = (selector: string | null) =>
  selector === null ? undefined : Object.fromEntries(selector.split(',').map((pair) => pair.split('=') as [string, string]))

/** Serves the store for reading only, since edges write nothing. Writes the kubeconfig to the file `kubeconfig`. */
export async function serveStore(store: Store, kubeconfig: string): Promise<ApiFacade> {
  const ca = await createCa(new Date())
  const pair = await issueCertificate({ ca, names: ['127.0.0.1'], now: new Date() })
  const sessions = new Set<ServerHttp2Session>()
  const reads: string[] = []
  let port = 0
  let server = await open()

  async function open() {
    const opened = createSecureServer({ cert: pair.certificate, key: pair.key })
    opened.on('session', (session) => {
      sessions.add(session)
      session.on('close', () => sessions.delete(session))
    })
    opened.on('stream', (stream, headers) => {
      stream.on('error', () => stream.close())
      const url = new URL(headers[':path'] ?? '', 'https://localhost')
      answer(stream, url).catch((error: unknown) => {
        // A client that was killed, or `leave`, has destroyed the stream meanwhile.
        if (stream.destroyed || stream.headersSent) stream.close()
        else status(stream, isStoreError(error, 'gone') ? 410 : 500)
      })
    })
    opened.listen(port, '127.0.0.1')
    await once(opened, 'listening')
    port = (opened.address() as AddressInfo).port
    return opened
  }

  async function answer(stream: ServerHttp2Stream, url: URL): Promise<void> {
    const asked = parse(url.pathname)
    if (!asked) status(stream, 404)
    else if (asked.name !== undefined) await one(stream, asked, asked.name)
    else if (url.searchParams.get('watch') === 'true') await watch(stream, asked, url.searchParams)
    else {
      const { items, resourceVersion } = await store.list(asked.kind, optionsOf(asked, url.searchParams))
      json(stream, 200, { kind: `${asked.kind.kind}List`, metadata: { resourceVersion }, items })
    }
  }

  async function one(stream: ServerHttp2Stream, { kind, namespace }: Asked, name: string): Promise<void> {
    const object = await store.get(kind, { namespace, name })
    if (kind.kind === 'Secret') reads.push(name)
    if (object) json(stream, 200, object)
    else status(stream, 404)
  }

  async function watch(stream: ServerHttp2Stream, asked: Asked, params: URLSearchParams): Promise<void> {
    const ended = new AbortController()
    stream.on('close', () => ended.abort())
    const resourceVersion = params.get('resourceVersion') ?? ''
    const events = store.watch(asked.kind, { ...optionsOf(asked, params), resourceVersion, signal: ended.signal })
    stream.respond({ ':status': 200, 'content-type': 'application/json' })
    for await (const event of events) {
      const object = event.type === 'bookmark' ? { metadata: { resourceVersion: event.resourceVersion } } : event.object
      stream.write(`${JSON.stringify({ type: event.type.toUpperCase(), object })}\n`)
    }
    stream.end()
  }

  async function leave(): Promise<void> {
    const closed = once(server, 'close')
    server.close()
    for (const session of sessions) session.destroy()
    await closed
  }

  await writeFile(kubeconfig, kubeconfigOf(port, ca.certificate), { mode: 0o600 })
  return {
    leave,
    async comeBack() {
      server = await open()
    },
    secretReads: () => reads,
    async [Symbol.asyncDispose]() {
      if (server.listening) await leave()
    },
  }
}

const optionsOf = ({ namespace }: Asked, params: URLSearchParams) => ({
  namespace,
  labels: labelsOf(params.get('labelSelector')),
})

function json(stream: ServerHttp2Stream, code: number, body: unknown): void {
  stream.respond({ ':status': code, 'content-type': 'application/json' })
  stream.end(JSON.stringify(body))
}

function status(stream: ServerHttp2Stream, code: number): void {
  const reasons: Readonly<Record<number, string>> = { 404: 'NotFound', 410: 'Expired' }
  json(stream, code, { kind: 'Status', code, reason: reasons[code] ?? '', message: '' })
}

function kubeconfigOf(port: number, ca: string): string {
  const cluster = { server: `https://127.0.0.1:${port}`, 'certificate-authority-data': Buffer.from(ca).toString('base64') }
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster }],
    users: [{ name: 'test', user: { token: 'test' } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    'current-context': 'test',
  })
}
