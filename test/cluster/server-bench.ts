import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { KubeConfig } from '@kubernetes/client-node'
import pg from 'pg'
import { pino } from 'pino'
import { z } from 'zod'
import { Namespace } from '../../crds/core.ts'
import { DatabaseServer } from '../../crds/database-server.ts'
import type { Motor } from '../../crds/motor.ts'
import type { Region } from '../../crds/region.ts'
import { createCa, type KeyPair } from '../../operator/certificates/local-ca.ts'
import { createAdminCertificate } from '../../operator/certificates/renewing-certificate.ts'
import { tlsTo } from '../../operator/engines/postgresql/connection.ts'
import { ADMIN_USER, adminCredentials } from '../../operator/server/credentials.ts'
import { createKubernetesRuntime, type KubernetesRuntime } from '../../operator/server/kubernetes/kubernetes-runtime.ts'
import { POD_SETTINGS, type PodSettings } from '../../operator/server/kubernetes/desired-server.ts'
import type { ServerState } from '../../operator/server/runtime.ts'
import { isStoreError, keyOf } from '../../store/port.ts'
import { createKubernetesStore, type KubernetesStore } from '../../store/kubernetes.ts'
import { region as regionWith } from '../builders/resources.ts'
import type { KubernetesClient } from '../../store/kubernetes/client.ts'

export type Running = Extract<ServerState, { readonly phase: 'running' }>

export interface ServerBench extends AsyncDisposable {
  readonly store: KubernetesStore
  readonly runtime: KubernetesRuntime
  readonly ca: KeyPair
  /** Returns the client certificate with which the operator logs in to servers. */
  readonly adminCertificate: () => Promise<KeyPair>
  /** Namespace of the servers. */
  readonly namespace: string
  /** Namespaces of tenants that the runtime gets. */
  readonly tenants: Set<string>
  /** Offset of the runtime's clock; negative for a slow clock. */
  readonly ahead: { ms: number }
  /** Creates another namespace, which is deleted with the bench. */
  addNamespace(labels?: Record<string, string>): Promise<string>
  /** Creates a DatabaseServer in a region with the given spec; by default with exposure NodePort. With `access`, it is a dedicated one. */
  addServer(instanceBody?: {
    readonly motor?: Motor
    readonly region?: Partial<Region['spec']>
    readonly access?: DatabaseServer['spec']['access']
    readonly monitoring?: DatabaseServer['spec']['monitoring']
  }): Promise<DatabaseServer>
  ensure(server: DatabaseServer): Promise<ServerState>
  /** Repeats `ensure` at each change until `isDone`. */
  until(server: DatabaseServer, isDone: (state: ServerState) => boolean): Promise<ServerState>
  /** Waits until a server runs. @throws Error when the server has failed */
  running(server: DatabaseServer): Promise<Running>
  /** Logs in as the administrator at the public address, with TLS and only the CA as trust anchor. The session ends with the bench. */
  connect(server: DatabaseServer, options?: pg.ClientConfig): Promise<pg.Client>
}

/** Interval between calls of `ensure` without a change, as in the operator. */
const LOOK_AGAIN_MS = 1_000
const DAY = 86_400_000

/** Opens a runtime of database servers on the cluster of `KUBECONFIG`, in a new namespace that accepts only restricted pods. */
export async function openServerBench(pods: Pick<PodSettings, 'exporters'> = {}): Promise<ServerBench> {
  const cleanup = new AsyncDisposableStack()
  const config = new KubeConfig()
  config.loadFromFile(process.env.KUBECONFIG ?? '')
  const store = cleanup.use(createKubernetesStore({ config }))
  const ca = await createCa(new Date(Date.now() - 100 * DAY))
  const regions = new Map<string, Region>()
  const tenants = new Set<string>()
  const ahead = { ms: 0 }

  async function addNamespace(labels: Record<string, string> = {}): Promise<string> {
    const name = `servers-${randomBytes(4).toString('hex')}`
    await store.create(Namespace, { metadata: { name, labels } })
    cleanup.defer(() => store.delete(Namespace, { name }))
    return name
  }

  const namespace = await addNamespace({ 'pod-security.kubernetes.io/enforce': 'restricted' })
  const adminCertificate = createAdminCertificate({ ca: () => ca, user: ADMIN_USER, now: () => new Date() })
  const runtime = createKubernetesRuntime({
    store,
    settings: {
      ...{ ...POD_SETTINGS, ...pods, namespace, dial: 'address' },
      sharedSize: { ...POD_SETTINGS.sharedSize, storageGiB: 1 },
    },
    region: (id) => regions.get(id),
    plan: () => undefined,
    tenants: () => [...tenants],
    ca: () => ca,
    adminCertificate,
    logger: pino({ level: process.env.MOORING_TEST_LOG ?? 'silent' }),
    now: () => new Date(Date.now() + ahead.ms),
  })
  cleanup.defer(() => runtime.close())
  const changes = new Map<string, () => void>()
  runtime.onChange((name) => changes.get(name)?.())

  const ensure = async (server: DatabaseServer) => runtime.ensure(server, await adminCredentials(store, server))

  async function until(server: DatabaseServer, isDone: (state: ServerState) => boolean): Promise<ServerState> {
    for (;;) {
      const { promise, resolve } = Promise.withResolvers<undefined>()
      changes.set(server.metadata.name, () => resolve(undefined))
      const state = await ensure(server)
      if (isDone(state)) return state
      const timer = setTimeout(() => resolve(undefined), LOOK_AGAIN_MS)
      await promise
      clearTimeout(timer)
    }
  }

  async function running(server: DatabaseServer): Promise<Running> {
    const state = await until(server, ({ phase }) => phase === 'running' || phase === 'failed')
    if (state.phase !== 'running') throw new Error(`the server is not running: ${JSON.stringify(state)}`)
    return state
  }

  async function addServer(instanceBody: Parameters<ServerBench['addServer']>[0] = {}): Promise<DatabaseServer> {
    const id = crypto.randomUUID()
    regions.set(id, regionWith({ databases: { exposure: 'NodePort' }, ...instanceBody.region, id }))
    const metadata = { namespace, name: `pg-${randomBytes(3).toString('hex')}` }
    const { motor = 'postgresql-15.4.0', access, monitoring } = instanceBody
    const use = access ? { tenancy: 'dedicated' as const, capacity: 1, access } : { tenancy: 'shared' as const, capacity: 5 }
    const server = await store.create(DatabaseServer, { metadata, spec: { motor, region: id, monitoring, ...use } })
    cleanup.defer(async () => {
      try {
        await store.delete(DatabaseServer, keyOf(server))
      } catch (error) {
        if (!isStoreError(error, 'not_found')) throw error
      }
    })
    return server
  }

  return {
    ...{ store, runtime, ca, adminCertificate, namespace, tenants, ahead, addServer, ensure, until, running },
    addNamespace: (labels) => addNamespace(labels),
    async connect(server, options = {}) {
      const { host, port } = await running(server)
      const login = await adminCredentials(store, server)
      const client = options.ssl === undefined ? await adminCertificate() : undefined
      const ssl = tlsTo({ ca: ca.certificate, client })
      const session = new pg.Client({
        host,
        port,
        ...login,
        database: 'postgres',
        ssl,
        connectionTimeoutMillis: 5_000,
        ...options,
      })
      session.on('error', () => undefined)
      await session.connect()
      cleanup.defer(() => session.end())
      return session
    },
    [Symbol.asyncDispose]: () => cleanup.disposeAsync(),
  }
}

/** Destination of a connection attempt. */
export interface Destination {
  readonly host: string
  readonly port: number
}

export interface Visitor {
  readonly namespace: string
  /** Image that contains node. */
  readonly image: string
}

const CONNECT_MS = 3_000
const ATTEMPT_PAUSE_MS = 50

/** Script that writes the result for each destination, `open` or an error code, to the termination log, which the kubelet reads. */
const SCRIPT = `
const { connect } = require('node:net')
const { writeFileSync } = require('node:fs')
const attempt = ({ host, port }) => new Promise((resolve) => {
  const socket = connect({ host, port, timeout: ${CONNECT_MS} })
  const end = (word) => { socket.destroy(); resolve(word) }
  socket.once('connect', () => end('open')).once('timeout', () => end('timeout')).once('error', (error) => end(error.code))
})
Promise.all(JSON.parse(process.argv[1]).map(attempt)).then((words) => writeFileSync('/dev/termination-log', JSON.stringify(words)))
`

const Ended = z.object({
  status: z.object({
    containerStatuses: z.array(z.object({ state: z.object({ terminated: z.object({ message: z.string() }) }) })).length(1),
  }),
})

/**
 * Tries to connect from a new pod. Returns the result for each destination, in order: `open`, `timeout` or an error code.
 */
export async function visit(client: KubernetesClient, from: Visitor, destinations: readonly Destination[]): Promise<string[]> {
  const name = `visitor-${randomBytes(4).toString('hex')}`
  const path = `/api/v1/namespaces/${from.namespace}/pods`
  const command = ['node', '-e', SCRIPT, JSON.stringify(destinations)]
  const container = { name: 'visitor', image: from.image, imagePullPolicy: 'IfNotPresent', command }
  const body = { metadata: { name }, spec: { restartPolicy: 'Never', containers: [container] } }
  const made = await client.request({ method: 'POST', path, body })
  if (made.status !== 201) throw new Error(`the visitor pod was rejected: ${JSON.stringify(made.body)}`)
  for (;;) {
    const { body } = await client.request({ method: 'GET', path: `${path}/${name}` })
    const ended = Ended.safeParse(body).data?.status.containerStatuses[0]
    if (ended) return z.array(z.string()).parse(JSON.parse(ended.state.terminated.message))
    await delay(ATTEMPT_PAUSE_MS)
  }
}
