import type { Logger } from 'pino'
import type { DatabaseServer } from '../../../crds/database-server.ts'
import { MOTORS, partsOf } from '../../../crds/motor.ts'
import { type Clock, pause, systemClock } from '../../../shared/timers.ts'
import type { KubernetesStore } from '../../../store/kubernetes.ts'
import type { KeyPair } from '../../certificates/local-ca.ts'
import { adminSecretName } from '../credentials.ts'
import { PROGRAMS } from '../process/programs/programs.ts'
import type { AdminTarget } from '../../engines/engine.ts'
import type { AdminCredentials, Held, ServerRuntime, ServerState } from '../runtime.ts'
import { callersAddress, certificateNames, internalHost, serviceName, type Surroundings } from './addresses.ts'
import { announce, createAnswering, type Serving } from './answering.ts'
import { createApplier } from '../../kubernetes/apply.ts'
import { certificateIn, certificateSecretOf, currentCertificate } from './certificate.ts'
import { createChildren, removeChildren } from './children.ts'
import { createExporterLogins } from './exporter/login.ts'
import { accessHash, configHash, configMapOf, childNames, insidersOf, podsServiceOf, serviceOf } from './manifests.ts'
import { Secret } from '../../../crds/core.ts'
import { ConfigMap, NetworkPolicy, type Pod, Service, StatefulSet } from '../../kubernetes/kinds.ts'
import { networkPolicyOf, podNetworks } from './network-policy.ts'
import { createHangCheck, deletePod } from './hang-check.ts'
import { createNodes } from './nodes.ts'
import { type PlacementFacts, placementOf, type DesiredServer } from './desired-server.ts'
import { podState } from '../../kubernetes/pod-state.ts'
import { podAnnotations, statefulSetOf } from './stateful-set.ts'
import { createVolumes, isOutdated } from './volume.ts'

export interface KubernetesRuntimeDeps extends PlacementFacts {
  readonly store: KubernetesStore
  /** Namespaces of the tenants on a server, by its object name. */
  readonly tenants: (server: string) => readonly string[]
  /** CA of the installation, with its key. */
  readonly ca: () => KeyPair | Promise<KeyPair>
  /** Client certificate by which servers authenticate the operator. */
  readonly adminCertificate: () => Promise<KeyPair>
  readonly logger: Logger
  readonly now?: () => Date
  readonly clock?: Clock
}

export interface KubernetesRuntime extends ServerRuntime {
  /** Admits exactly the present tenants of a server, given by its object name, after their set changed. @throws StoreError */
  tenantsChanged(server: string): Promise<void>
}

/** Server whose pod serves, and what the operator logs in with. */
interface LoginFacts extends Pick<Serving, 'pod' | 'address' | 'certificate'> {
  readonly service: Service
  readonly credentials: AdminCredentials
  /** PEM of the CA. */
  readonly ca: string
  readonly podNetworks: readonly string[]
  readonly exporterPassword: string | undefined
}

interface PodFacts {
  readonly podNetworks: readonly string[]
  readonly pod: Pod | undefined
}

/** What a pod of a former version of its StatefulSet waits for. */
const REPLACED: Held = { reason: 'Updating', message: 'its pod is being replaced' }

/** Delay of the check whether a server loaded its new certificate. */
const RELOAD_MS = 2_000

/**
 * Creates the runtime of servers as StatefulSets in a cluster. It keeps only state that can be read again: the API server has all objects.
 * Objects that were changed by hand are restored. `close` leaves the servers running.
 */
export function createKubernetesRuntime(deps: KubernetesRuntimeDeps): KubernetesRuntime {
  const { store, settings, logger, now = () => new Date(), clock = systemClock } = deps
  const handlers: ((name: string) => void)[] = []
  const stopping = new AbortController()
  const last = new Map<string, DesiredServer>()
  const applier = createApplier(store.client)
  const grow = createVolumes({ store, now })
  const answering = createAnswering({ store, logger })
  const changed = (server: string): void => {
    for (const handler of handlers) handler(server)
  }
  const children = createChildren({
    store,
    namespace: settings.namespace,
    onError: (error) => logger.warn({ err: error }, 'a watch of database servers was restarted'),
    onChange: changed,
  })
  const exporters = createExporterLogins({ store, applier, children })
  const nodes = createNodes({ store, logger, onChange: () => children.known().forEach(changed) })
  const hangCheck = createHangCheck({ client: store.client, podOf: (key) => children.pods.get(key), clock, logger })
  const running = Promise.all([
    ...[children.run(stopping.signal), nodes.run(stopping.signal), hangCheck.run(stopping.signal)],
    resync(),
  ])

  async function resync(): Promise<void> {
    while (!stopping.signal.aborted) {
      await pause(clock, settings.resyncMs, stopping.signal)
      applier.prune()
      children.known().forEach(changed)
    }
  }

  function again(server: string): void {
    const disarm = clock.after(RELOAD_MS, () => changed(server))
    stopping.signal.addEventListener('abort', disarm, { once: true })
  }

  async function surroundingsOf(desired: DesiredServer, service: Service): Promise<Surroundings> {
    const pod = children.pods.get(keysOf(desired.server).pod)
    return { service, pod, nodes: needsNodes(desired) ? await nodes.list() : [] }
  }

  /** Applies the NetworkPolicy. @returns the pod networks */
  async function admit(desired: DesiredServer, { pod, nodes }: Surroundings): Promise<readonly string[]> {
    const podAddresses = pod?.status?.podIP === undefined ? [] : [pod.status.podIP]
    const networks = podNetworks({ configured: settings.podNetworks, nodes, podAddresses })
    const namespaces = deps.tenants(desired.server.metadata.name)
    await applier.apply(
      { kind: NetworkPolicy, live: children.policies },
      networkPolicyOf(desired, { namespaces, podNetworks: networks }),
    )
    return networks
  }

  async function bringUp(desired: DesiredServer, credentials: AdminCredentials): Promise<ServerState> {
    const { engine, server } = desired
    const keys = keysOf(server)
    const services = { kind: Service, live: children.services }
    await applier.apply(services, podsServiceOf(desired))
    const surroundings = await surroundingsOf(desired, await applier.apply(services, serviceOf(desired)))
    const podNetworks = await admit(desired, surroundings)
    const address = callersAddress(desired, surroundings)
    // Its certificate must contain the address, which is unknown before the load balancer exists.
    if (typeof address === 'string' && desired.exposure === 'LoadBalancer') return { phase: 'starting', message: address }

    const ca = await deps.ca()
    const stored = certificateIn(children.certificates.get(keys.certificate))
    const certificate = await currentCertificate(stored, {
      ca,
      now: now(),
      key: engine.key,
      names: certificateNames(desired, surroundings),
    })
    const secret = certificateSecretOf(desired, certificate, ca.certificate)
    await applier.apply({ kind: Secret, live: children.certificates }, secret)
    const login = { adminPassword: credentials.password, ca: ca.certificate }
    const exporterPassword = await exporters.prepare(desired, login)
    const growing = await applyPod(desired, { podNetworks, pod: surroundings.pod })
    await exporters.clean(desired)

    const state = podState(surroundings.pod, (line) => engine.isShowable(line))
    if (state.phase !== 'serving' || !surroundings.pod) return state.phase === 'serving' ? { phase: 'starting' } : state
    if (typeof address === 'string') return { phase: 'starting', message: address }
    const running = await tryLogin(desired, {
      address,
      certificate,
      credentials,
      exporterPassword,
      ca: ca.certificate,
      podNetworks,
      service: surroundings.service,
      pod: surroundings.pod,
    })
    const isFormer = isOutdated(surroundings.pod, children.statefulSets.get(keys.statefulSet))
    return heldBy(running, isFormer ? REPLACED : growing)
  }

  async function tryLogin(desired: DesiredServer, facts: LoginFacts): Promise<ServerState> {
    const { service, ca, credentials, podNetworks, exporterPassword, ...about } = facts
    const { engine, server, tls, access } = desired
    const host = settings.dial === 'name' ? serviceName(server.metadata) : (service.spec.clusterIP ?? '')
    const proof = tls ? { ca, client: await deps.adminCertificate() } : {}
    const target = {
      host,
      port: engine.port,
      adminAddress: adminAddressOf(desired, about.pod),
      ...proof,
      ...credentials,
      ...(access && { insiders: insidersOf(desired, podNetworks) }),
    }
    const state = await answering({ ...about, engine, target, again: () => again(server.metadata.name) })
    if (state.phase !== 'running') return state
    if (PROGRAMS[partsOf(server.spec.motor).family]?.mayHang)
      hangCheck.watch(server.metadata.name, { engine, pod: about.pod, target })
    return {
      ...state,
      ...(access && { internalHost: internalHost(desired) }),
      ...(!tls && { tls: 'none' }),
      exporterPassword,
    }
  }

  /** Applies the pod and its configuration. A full volume grows while its server is down. @returns what the volume waits for */
  async function applyPod(desired: DesiredServer, { podNetworks, pod }: PodFacts): Promise<Held | undefined> {
    const { configs, statefulSets, claims } = children
    const config = configMapOf(desired, podNetworks)
    await applier.apply({ kind: ConfigMap, live: configs }, config)
    const live = statefulSets.get(keysOf(desired.server).statefulSet)
    await applier.apply(
      { kind: StatefulSet, live: statefulSets },
      statefulSetOf(desired, { configHash: configHash(desired, config), live }),
    )
    const rules = accessHash(desired, config)
    if (pod && rules !== undefined) await announce(store, pod, { annotation: podAnnotations.access, value: rules })
    const isSized = desired.server.spec.size !== undefined
    return isSized ? grow(claims.get(keysOf(desired.server).claim), desired.size.storageGiB) : undefined
  }

  async function ensure(server: DatabaseServer, credentials: AdminCredentials): Promise<ServerState> {
    if (stopping.signal.aborted) return { phase: 'absent' }
    await children.synced()
    children.know(server)
    const keys = keysOf(server)
    const existing = { statefulSet: children.statefulSets.get(keys.statefulSet), service: children.services.get(keys.service) }
    const placement = placementOf(server, deps, existing)
    if ('phase' in placement) return placement
    const desired = { ...placement, admin: { user: credentials.user, secret: adminSecretName(server.metadata.name) } }
    last.set(server.metadata.name, desired)
    return bringUp(desired, credentials)
  }

  return {
    adoptsPassword: true,
    async motors() {
      const served = MOTORS.filter((motor) => settings.images[motor] !== undefined)
      return new Map(served.map((motor) => [motor, { version: partsOf(motor).version }]))
    },
    ensure,
    async remove(server) {
      last.delete(server.metadata.name)
      hangCheck.forget(server.metadata.name)
      children.know(server)
      if (!(await removeChildren(store, server))) return false
      children.forget(server)
      logger.info({ server: server.metadata.name }, 'database server removed')
      return true
    },
    async restart(server) {
      const pod = children.pods.get(keysOf(server).pod)
      if (pod?.metadata.deletionTimestamp === undefined && pod) await deletePod(store.client, pod)
    },
    async tenantsChanged(server) {
      const desired = last.get(server)
      const service = desired && children.services.get(keysOf(desired.server).service)
      if (desired && service) await admit(desired, await surroundingsOf(desired, service))
    },
    onChange: (handler) => void handlers.push(handler),
    async close() {
      stopping.abort()
      await running
    },
  }
}

/** Address for the administrator alone. Services do not have its port, so the operator dials the pod. */
function adminAddressOf({ adminPort: port }: DesiredServer, { status }: Pod): AdminTarget['adminAddress'] {
  const host = status?.podIP
  return port === undefined || host === undefined ? undefined : { host, port }
}

const heldBy = (state: ServerState, held: Held | undefined): ServerState =>
  state.phase === 'running' && held ? { ...state, held } : state

const needsNodes = ({ exposure, settings }: DesiredServer): boolean =>
  exposure === 'NodePort' || settings.podNetworks.length === 0

function keysOf({ metadata: { namespace, name } }: DatabaseServer) {
  const names = childNames(name)
  const key = (name: string) => ({ namespace, name })
  return {
    statefulSet: key(names.statefulSet),
    service: key(names.service),
    certificate: key(names.certificate),
    pod: key(names.pod),
    claim: key(names.claim),
  }
}
