import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { KubeConfig } from '@kubernetes/client-node'
import { customResourceDefinition } from '../../../crds/schema/definition.ts'
import { CUSTOM_KINDS } from '../../../crds/index.ts'
import type { KubernetesClient } from '../../../store/kubernetes/client.ts'
import { createKubernetesStore, type KubernetesStore, type KubernetesStoreDeps } from '../../../store/kubernetes.ts'
import { scratch } from '../../support/postgresql/disks.ts'
import { apiServer, controllerManager, etcd, type Layout, serviceAccountKey, type Program, program } from './programs.ts'
import { bedSettings, buildKubernetes } from '../../cluster/setup/bed.ts'
import { freePort } from '../../support/free-port.ts'
import { LATER } from '../../support/patience.ts'

/** Real API server with a real etcd and no nodes. Has Mooring's kinds and the controllers for garbage collection and namespace deletion. */
export interface ControlPlane extends AsyncDisposable {
  /** Returns a new config of an administrator. `server` is another address of the API server, such as that of a proxy. */
  config(server?: string): KubeConfig
  /** Path of the same config, for another process. */
  readonly kubeconfig: string
  /** Port of the API server on loopback. */
  readonly port: number
  /** Bearer token of the administrator in the config. */
  readonly token: string
  readonly caFile: string
  /** Creates a store with a connection of its own, which closes with the control plane. */
  store(deps?: Partial<KubernetesStoreDeps>): KubernetesStore
  readonly apiServer: Program
  /** Resolves when the API server answers as ready. */
  ready(): Promise<void>
  /** Makes every revision up to now too old for a watch. */
  compact(): Promise<void>
}

/** Starts a control plane from the programs of the test bed. All its processes end with this process, even when this process is killed. */
export async function startControlPlane(): Promise<ControlPlane> {
  await using started = new AsyncDisposableStack()
  const directory = await mkdtemp(join(await scratch(), 'mooring-control-plane-'))
  started.defer(() => rm(directory, { recursive: true, force: true }))
  const layout: Layout = {
    directory,
    binaries: await binaries(),
    kubeconfig: join(directory, 'admin.conf'),
    etcdPort: await freePort(),
    etcdPeerPort: await freePort(),
    apiPort: await freePort(),
    token: randomBytes(16).toString('hex'),
  }
  await writeFile(join(directory, 'tokens.csv'), `${layout.token},admin,admin,system:masters\n`)
  await writeFile(join(directory, 'sa.key'), serviceAccountKey())
  started.use(await program(etcd(layout)).start())
  const api = started.use(await program(apiServer(layout)).start())
  const port = layout.apiPort
  const caFile = join(directory, 'apiserver.crt')

  function config(server = `https://127.0.0.1:${port}`): KubeConfig {
    const made = new KubeConfig()
    const cluster = { name: 'test', server, caFile }
    made.loadFromClusterAndUser(cluster as KubeConfig['clusters'][number], { name: 'admin', token: layout.token })
    return made
  }
  const store = (deps: Partial<KubernetesStoreDeps> = {}): KubernetesStore =>
    started.use(createKubernetesStore({ config: config(), ...deps }))

  await eventually(() => answersReady(config()))
  const { client } = store()
  await writeFile(layout.kubeconfig, config().exportConfig())
  started.use(await program(controllerManager(layout)).start())
  await defineKinds(client)
  const owned = started.move()
  return {
    config,
    kubeconfig: layout.kubeconfig,
    port,
    token: layout.token,
    caFile,
    store: (deps = {}) => owned.use(createKubernetesStore({ config: config(), ...deps })),
    apiServer: api,
    ready: () => eventually(() => answersReady(config())),
    compact: () => compact(layout, client),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

/** Whether the API server is ready. Uses a new connection, because an open one may lead to an API server that has ended. */
async function answersReady(config: KubeConfig): Promise<boolean> {
  try {
    await using store = createKubernetesStore({ config, timeoutMs: 1_000, connectMs: 500 })
    return (await store.client.request({ method: 'GET', path: '/readyz' })).status === 200
  } catch {
    return false
  }
}

async function defineKinds(client: KubernetesClient): Promise<void> {
  for (const kind of CUSTOM_KINDS) {
    const { status } = await client.request({ method: 'POST', path: DEFINITIONS, body: customResourceDefinition(kind) })
    if (status !== 201) throw new Error(`${kind.plural} could not be defined: ${status}`)
  }
  for (const { group, version, plural } of CUSTOM_KINDS)
    await eventually(() => serves(client, `/apis/${group}/${version}/${plural}`))
}

async function serves(client: KubernetesClient, path: string): Promise<boolean> {
  return (await client.request({ method: 'GET', path, query: { limit: '1' } })).status === 200
}

/**
 * Compacts etcd, and makes the API server discard its events in memory: the API server starts a new watch cache of a kind
 * whenever its definition changes.
 */
async function compact({ etcdPort }: Layout, client: KubernetesClient): Promise<void> {
  const call = async (path: string, body: object): Promise<unknown> => {
    const answer = await fetch(`http://127.0.0.1:${etcdPort}/v3/kv/${path}`, { method: 'POST', body: JSON.stringify(body) })
    if (!answer.ok) throw new Error(`etcd refused ${path}: ${answer.status}`)
    return answer.json()
  }
  const { header } = (await call('range', { key: Buffer.from('/').toString('base64') })) as { header: { revision: string } }
  await call('compaction', { revision: header.revision, physical: true })
  for (const kind of CUSTOM_KINDS) {
    const path = `${DEFINITIONS}/${kind.plural}.${kind.group}`
    const { spec } = customResourceDefinition(kind)
    const versions = spec.versions.map((version) => ({
      ...version,
      additionalPrinterColumns: version.additionalPrinterColumns.map((column) => ({
        ...column,
        description: `Touched at ${Date.now()}.`,
      })),
    }))
    const contentType = 'application/merge-patch+json'
    const { status } = await client.request({ method: 'PATCH', path, contentType, body: { spec: { versions } } })
    if (status !== 200) throw new Error(`${kind.plural} could not be touched: ${status}`)
  }
}

/** Returns the directory of the Kubernetes programs. Compiles them first when the cache of the test bed lacks them. */
export async function binaries(): Promise<string> {
  await buildKubernetes()
  return (await bedSettings()).TC_BIN
}

/** Resolves when `check` returns true. Calls it every 50 ms. @throws Error after `LATER` */
export async function eventually(check: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + LATER.timeout
  while (!(await check())) {
    if (performance.now() > end) throw new Error(`not within ${LATER.timeout} ms: ${check.toString()}`)
    await setTimeout(50)
  }
}
