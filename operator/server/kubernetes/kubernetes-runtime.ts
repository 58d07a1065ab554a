import type { Logger } from 'pino'
import type { DatabaseServer } from '../../../crds/database-server.ts'
import { MOTORS, partsOf } from '../../../crds/motor.ts'
import { type Clock, pause, systemClock } from '../../../shared/timers.ts'
import type { KubernetesStore } from '../../../store/kubernetes.ts'
import type { KeyPair } from '../../certificates/local-ca.ts'
import { adminSecretName } from '../credentials.ts'
import type { AdminCredentials, ServerRuntime, ServerState } from '../runtime.ts'
import { callersAddress, certificateNames, serviceName, type Surroundings } from './addresses.ts'
import { createAnswering } from './answering.ts'
import { createApplier } from '../../kubernetes/apply.ts'
import { certificateIn, certificateSecretOf, currentCertificate } from './certificate.ts'
import { type Children, createChildren, removeChildren } from './children.ts'
import { configHash, configMapOf, childNames, podsServiceOf, serviceOf } from './manifests.ts'
import { ENGINE_PODS } from './engine-pods.ts'
import { Secret } from '../../../crds/core.ts'
import { ConfigMap, NetworkPolicy, Service, StatefulSet } from '../../kubernetes/kinds.ts'
import { networkPolicyOf, podNetworks } from './network-policy.ts'
import { createNodes } from './nodes.ts'
import { type PlacementFacts, placementOf, type DesiredServer } from './desired-server.ts'
import { podState } from '../../kubernetes/pod-state.ts'
import { statefulSetOf } from './stateful-set.ts'

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
  const nodes = createNodes({ store, logger, onChange: () => children.known().forEach(changed) })
  const running = Promise.all([children.run(stopping.signal), nodes.run(stopping.signal), resync()])

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

  async function admit(desired: DesiredServer, { pod, nodes }: Surroundings): Promise<void> {
    const podAddresses = pod?.status?.podIP === undefined ? [] : [pod.status.podIP]
    const networks = podNetworks({ configured: settings.podNetworks, nodes, podAddresses })
    const namespaces = deps.tenants(desired.server.metadata.name)
    await applier.apply(
      { kind: NetworkPolicy, live: children.policies },
      networkPolicyOf(desired, { namespaces, podNetworks: networks }),
    )
  }

  async function bringUp(desired: DesiredServer, credentials: AdminCredentials): Promise<ServerState> {
    const { engine, server } = desired
    const keys = keysOf(server)
    const services = { kind: Service, live: children.services }
    await applier.apply(services, podsServiceOf(desired))
    const surroundings = await surroundingsOf(desired, await applier.apply(services, serviceOf(desired)))
    await admit(desired, surroundings)
    const address = callersAddress(desired, surroundings)
    // Its certificate must contain the address, which is unknown before the load balancer exists.
    if (typeof address === 'string' && desired.exposure === 'LoadBalancer') return { phase: 'starting', message: address }

    const ca = await deps.ca()
    const stored = certificateIn(children.certificates.get(keys.certificate))
    const certificate = await currentCertificate(stored, { ca, names: certificateNames(desired, surroundings), now: now() })
    const secret = certificateSecretOf(desired, certificate, ca.certificate)
    await applier.apply({ kind: Secret, live: children.certificates }, secret)
    await applyPod(desired, children)

    const { pod, service } = surroundings
    const state = podState(pod, (line) => engine.isShowable(line))
    if (state.phase !== 'serving' || !pod) return state.phase === 'serving' ? { phase: 'starting' } : state
    if (typeof address === 'string') return { phase: 'starting', message: address }
    const host = settings.dial === 'name' ? serviceName(server.metadata) : (service.spec.clusterIP ?? '')
    const target = { host, port: engine.port, ca: ca.certificate, client: await deps.adminCertificate(), ...credentials }
    return answering({ engine, pod, address, target, certificate, again: () => again(server.metadata.name) })
  }

  async function applyPod(desired: DesiredServer, { configs, statefulSets }: Children): Promise<void> {
    const config = configMapOf(desired)
    await applier.apply({ kind: ConfigMap, live: configs }, config)
    const live = statefulSets.get(keysOf(desired.server).statefulSet)
    await applier.apply(
      { kind: StatefulSet, live: statefulSets },
      statefulSetOf(desired, { configHash: configHash(config), live }),
    )
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
      const served = MOTORS.filter((motor) => settings.images[motor] !== undefined && ENGINE_PODS[partsOf(motor).family])
      return new Map(served.map((motor) => [motor, { version: partsOf(motor).version }]))
    },
    ensure,
    async remove(server) {
      last.delete(server.metadata.name)
      children.know(server)
      if (!(await removeChildren(store, server))) return false
      children.forget(server)
      logger.info({ server: server.metadata.name }, 'database server removed')
      return true
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
  }
}
