import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { Registry } from 'prom-client'
import { EndpointSlice, Namespace, Secret } from '../../../crds/core.ts'
import { labels, SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import { Tunnel } from '../../../crds/tunnel.ts'
import { TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import { TunnelPassword } from '../../../crds/tunnel-password.ts'
import { createEdge, type Edge, type EdgePorts } from '../../../edge/edge.ts'
import type { MeshLimits } from '../../../edge/mesh/limits.ts'
import { openMeshFiles } from '../../../edge/mesh/mesh-files.ts'
import { peersIn } from '../../../edge/mesh/peers.ts'
import { routedPasswordIndexes } from '../../../edge/routes.ts'
import { knownHostsFile } from '../../../crds/formats/ssh-public-key.ts'
import { generateHostKeys, parseHostKey } from '../../../edge/ssh/host-keys.ts'
import type { ConnectionRecord, RequestRecord } from '../../../journal/port.ts'
import { createCa, issueCertificate, type KeyPair } from '../../../operator/certificates/local-ca.ts'
import { encodeSecret } from '../../../operator/secret-data.ts'
import { createCacheSet, createCache } from '../../../store/cache.ts'
import { openTemporaryStore, type TemporaryStore } from '../store/temporary-store.ts'

export const DOMAIN = 'tunnel.localhost'
export const ENDPOINT = 'main'
const TENANT = 'acme--prod'
const hostKeys = generateHostKeys()
const MESH_SERVICE = { 'kubernetes.io/service-name': `edge-${ENDPOINT}-mesh` }

/** Resources and files that edges of one endpoint share, as in their pods. */
export interface MeshFixture extends AsyncDisposable {
  readonly store: TemporaryStore['store']
  readonly directory: string
  readonly meshFiles: string
  readonly hostKeyFiles: string
  /** CA of the tunnels' certificates. */
  readonly ca: KeyPair
  /** Creates a tunnel that accepts the key, with its certificate. */
  tunnel(publicKey: string, config?: object): Promise<{ readonly hostname: string; readonly name: string }>
  /** Adds an edge to the peers. */
  announce(name: string, port: number): Promise<void>
  withdraw(name: string): Promise<void>
  renewMeshCertificate(): Promise<void>
  knownHosts(ports: readonly number[]): Promise<string>
}

export async function openMeshFixture(): Promise<MeshFixture> {
  const opened = await openTemporaryStore()
  const { store } = opened
  const directory = await mkdtemp(join(tmpdir(), 'mooring-mesh-'))
  const [meshFiles, hostKeyFiles] = await Promise.all(['mesh-', 'keys-'].map((name) => mkdtemp(join(directory, name))))
  const [ca, meshCa] = await Promise.all([createCa(new Date()), createCa(new Date())])
  for (const name of [SYSTEM_NAMESPACE, TENANT]) await store.create(Namespace, { metadata: { name } })
  await store.create(TunnelEndpoint, {
    metadata: { name: ENDPOINT },
    spec: { region: crypto.randomUUID(), domain: DOMAIN, sshHost: '127.0.0.1' },
  })
  for (const [index, type] of ['ed25519', 'ecdsa', 'rsa'].entries()) {
    await writeFile(join(hostKeyFiles ?? '', type), hostKeys[index] ?? '', { mode: 0o600 })
  }

  async function renewMeshCertificate(): Promise<void> {
    const names = [`edge-${ENDPOINT}-mesh.${SYSTEM_NAMESPACE}.svc`]
    const { certificate, key } = await issueCertificate({ ca: meshCa, names, now: new Date(), usage: 'peer' })
    const files = { 'ca.crt': meshCa.certificate, 'tls.crt': certificate, 'tls.key': key }
    for (const [name, text] of Object.entries(files)) await writeFile(join(meshFiles ?? '', name), text, { mode: 0o600 })
  }
  await renewMeshCertificate()

  return {
    ...{ store, directory, ca, renewMeshCertificate },
    meshFiles: meshFiles ?? '',
    hostKeyFiles: hostKeyFiles ?? '',
    async tunnel(publicKey, config = {}) {
      const [name, hostname] = [`web-${randomBytes(4).toString('hex')}`, randomBytes(8).toString('hex')]
      const key = { namespace: TENANT, name }
      await store.create(Tunnel, { metadata: key, spec: { regionId: 1, config: { authorizedKeys: [publicKey], ...config } } })
      await certify(hostname)
      await store.patchStatus(Tunnel, key, {
        ...{ hostname, endpointRef: { name: ENDPOINT } },
        certificate: { status: 'valid', obtainedAt: new Date().toISOString() },
      })
      return { hostname, name }
    },
    async announce(name, port) {
      await store.create(EndpointSlice, {
        metadata: { namespace: SYSTEM_NAMESPACE, name, labels: MESH_SERVICE },
        addressType: 'IPv4',
        endpoints: [{ addresses: ['127.0.0.1'], targetRef: { name } }],
        ports: [{ name: 'mesh', port }],
      })
    },
    withdraw: (name) => store.delete(EndpointSlice, { namespace: SYSTEM_NAMESPACE, name }),
    async knownHosts(ports) {
      const lines = hostKeys.map((key) => parseHostKey(key).publicLine)
      const path = join(directory, `known_hosts-${ports.join('-')}`)
      await writeFile(path, ports.map((port) => knownHostsFile(lines, '127.0.0.1', port)).join(''))
      return path
    },
    async [Symbol.asyncDispose]() {
      await opened[Symbol.asyncDispose]()
      await rm(directory, { recursive: true, force: true, maxRetries: 5 })
    },
  }

  async function certify(hostname: string): Promise<void> {
    const { certificate, key } = await issueCertificate({ ca, names: [`${hostname}.${DOMAIN}`], now: new Date() })
    await store.create(Secret, {
      metadata: {
        namespace: SYSTEM_NAMESPACE,
        name: `tunnel-${hostname}-certificate`,
        labels: { [labels.endpoint]: ENDPOINT },
      },
      type: 'kubernetes.io/tls',
      data: encodeSecret({ 'tls.crt': certificate, 'tls.key': key }),
    })
  }
}

/** Whole edge in this process. */
export interface MeshEdge extends AsyncDisposable {
  readonly name: string
  readonly edge: Edge
  readonly ports: EdgePorts & { readonly mesh: number }
  readonly requests: readonly RequestRecord[]
  readonly connections: readonly ConnectionRecord[]
  readonly registry: Registry
  readonly reload: () => Promise<void>
}

interface Options {
  readonly limits?: Partial<MeshLimits>
  /** Port at which its peers find it, if not its own; undefined: the peers are configured already. */
  readonly announce?: (port: number) => Promise<number | undefined>
}

export async function startMeshEdge(
  fixture: MeshFixture,
  name: string,
  { limits, announce = async (port) => port }: Options = {},
): Promise<MeshEdge> {
  const { store } = fixture
  const stop = new AbortController()
  const log = pino({ level: process.env.EDGE_LOG ?? 'silent', name })
  const onError = (error: unknown) => log.warn({ err: error }, 'a watch was restarted')
  const following = createCacheSet({ store, onError })
  const endpoints = following.cached(TunnelEndpoint)
  const tunnels = following.cached(Tunnel)
  const passwords = following.cached(TunnelPassword, routedPasswordIndexes)
  const slices = createCache({
    store,
    kind: EndpointSlice,
    scope: { namespace: SYSTEM_NAMESPACE, labels: MESH_SERVICE },
    onError,
  })
  const work = Promise.all([following.run(stop.signal), slices.run(stop.signal)])
  await Promise.all([following.synced(), slices.synced()])
  const files = await openMeshFiles({ directory: fixture.meshFiles, log })
  const registry = new Registry()
  const requests: RequestRecord[] = []
  const connections: ConnectionRecord[] = []
  const edge = createEdge({
    ...{ name, endpoint: ENDPOINT, hostKeys, store, endpoints, tunnels, passwords, registry, log },
    spec: { domain: DOMAIN, publicHttpPort: 80, publicHttpsPort: 443 },
    mesh: { files, peers: peersIn(slices), ...(limits && { limits }) },
    journal: {
      request: (record) => void requests.push(record),
      connection: async (record) => void connections.push(record),
      audit: () => Promise.resolve(),
    },
  })
  const ports = await edge.listen('127.0.0.1', { ssh: 0, http: 0, https: 0, mesh: 0 })
  const mesh = ports.mesh ?? 0
  const announced = await announce(mesh)
  if (announced !== undefined) await fixture.announce(name, announced)
  let ended: Promise<void> | undefined
  return {
    ...{ name, edge, ports: { ...ports, mesh }, requests, connections, registry, reload: () => files.poll() },
    [Symbol.asyncDispose]: () =>
      (ended ??= (async () => {
        files[Symbol.dispose]()
        await edge.close()
        stop.abort()
        await work
      })()),
  }
}
