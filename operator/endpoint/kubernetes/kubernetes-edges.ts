import type { Logger } from 'pino'
import { RoleBinding } from '../../../crds/core.ts'
import type { TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import { edgeName } from '../../../shared/edge-objects.ts'
import { type Clock, pause, systemClock } from '../../../shared/timers.ts'
import { ignoringGone } from '../../../store/port.ts'
import type { KubernetesStore } from '../../../store/kubernetes.ts'
import { createApplier } from '../../kubernetes/apply.ts'
import { NetworkPolicy, type Pod, Service } from '../../kubernetes/kinds.ts'
import type { KeyPair } from '../../certificates/local-ca.ts'
import type { EdgeRuntime } from '../runtime.ts'
import { disruptionBudgetOf, roleBindingOf, roleOf, serviceAccountOf, bindEdges } from './access.ts'
import { createChildren } from './children.ts'
import { deploymentOf, edgesState } from './deployment.ts'
import { Deployment, PodDisruptionBudget, Role, ServiceAccount, keyIn } from './kinds.ts'
import { createMeshKeeper, createSecretChanges, createUnknownHostsKeeper } from './edge-secrets.ts'
import { addressPending, networkPolicyOf, meshServiceOf, serviceOf } from './services.ts'
import type { EdgePodSettings } from './settings.ts'

export interface KubernetesEdgesDeps {
  readonly store: KubernetesStore
  readonly settings: EdgePodSettings
  /** Every endpoint. */
  readonly endpoints: () => readonly TunnelEndpoint[]
  /** Names of the Secrets with the certificates of an endpoint's tunnels. */
  readonly certificates: (endpoint: TunnelEndpoint) => readonly string[]
  /** CA of the installation. */
  readonly ca: () => KeyPair
  readonly logger: Logger
  readonly now?: () => Date
  readonly clock?: Clock
}

export interface KubernetesEdges extends EdgeRuntime {
  tunnelsChanged(name: string): Promise<void>
  forget(name: string): Promise<void>
  /** Known pods of an endpoint's edges. */
  pods(endpoint: string): readonly Pod[]
  /** Resolves when all objects present at the start are known. */
  synced(): Promise<void>
  /** Stops reconciling. Edges keep running. */
  close(): Promise<void>
}

/**
 * Minimum interval between two writes of a Role, per name in it: a Role with ten thousand names is a large write and is made at most every
 * five seconds, one with a hundred names at most every 50 ms. The first write after a pause is made at once.
 */
const MS_A_NAME = 0.5
/** Interval of polling Secrets, which are not watched. */
const POLL_MS = 10_000
/** Interval of checking certificates in Secrets for renewal, far shorter than their remaining lifetime. */
const RENEWAL_MS = 3_600_000

/**
 * Creates the runtime of edges as Deployments in a cluster. It keeps no state of its own: the API server has all objects. Objects that were
 * changed or deleted by hand are restored. The TunnelEndpoint owns all of them.
 */
export function createKubernetesEdges(deps: KubernetesEdgesDeps): KubernetesEdges {
  const { store, settings, logger, now = () => new Date(), clock = systemClock } = deps
  const listeners = new Set<(name: string) => void>()
  const stopping = new AbortController()
  /** Time from which the Role of an endpoint may be written again, by endpoint. */
  const grantableAt = new Map<string, number>()
  /** Scheduled later reconcile, by endpoint. */
  const waiting = new Map<string, { readonly at: number; readonly callOff: () => void }>()
  const applier = createApplier(store.client)
  const changed = (endpoint: string): void => {
    for (const listener of listeners) listener(endpoint)
  }
  const onError = (error: unknown) => logger.warn({ err: error }, 'a watch of edges was restarted')
  const children = createChildren({ store, onError, onChange: changed })
  const secrets = createSecretChanges(store)
  const running = Promise.all([children.run(stopping.signal), poll()])
  const meshSecrets = createMeshKeeper({ store, now })
  const keepUnknownHostsSecret = createUnknownHostsKeeper({ store, ca: deps.ca, now })
  const find = (name: string) => deps.endpoints().find(({ metadata }) => metadata.name === name)

  async function poll(): Promise<void> {
    let renewalAt = clock.now() + RENEWAL_MS
    while (!stopping.signal.aborted) {
      await pause(clock, POLL_MS, stopping.signal)
      applier.prune()
      const mayBeDue = clock.now() >= renewalAt
      if (mayBeDue) renewalAt = clock.now() + RENEWAL_MS
      for (const endpoint of children.known()) if (mayBeDue || (await differ(endpoint))) changed(endpoint)
      await mendBinding()
    }
  }

  /** Restores the binding, which is not watched: without its subjects edges can read nothing. */
  async function mendBinding(): Promise<void> {
    // Before one endpoint is known, the list of endpoints may be incomplete.
    if (children.known().length === 0) return
    try {
      await bindEdges(store, deps.endpoints)
    } catch (err) {
      logger.debug({ err }, 'the binding of the edges could not be checked')
    }
  }

  /** Whether the Secrets of an endpoint changed. True when they cannot be read: the reconcile then reports the error. */
  async function differ(endpoint: string): Promise<boolean> {
    const found = find(endpoint)
    if (!found) return true
    try {
      return await secrets.differ(found)
    } catch (err) {
      logger.debug({ err, endpoint }, 'the Secrets of an endpoint could not be checked')
      return true
    }
  }

  /** Creates what an edge needs before it can start. @returns uid of its service account */
  async function admit(endpoint: TunnelEndpoint): Promise<string> {
    const accounts = { kind: ServiceAccount, live: children.accounts }
    const { metadata } = await applier.apply(accounts, serviceAccountOf(endpoint))
    await grant(endpoint)
    await applier.apply({ kind: RoleBinding, live: children.bindings }, roleBindingOf(endpoint))
    await bindEdges(store, deps.endpoints)
    await meshSecrets.keep(endpoint)
    await guard(endpoint)
    return metadata.uid
  }

  async function grant(endpoint: TunnelEndpoint): Promise<void> {
    const { name } = endpoint.metadata
    // Names are collected only when the Role may be written: for ten thousand tunnels that takes a while, too.
    const soonestMs = (grantableAt.get(name) ?? -Infinity) - clock.now()
    if (soonestMs > 0 && children.roles.get(keyIn(edgeName(name)))) {
      later(name, soonestMs)
      return
    }
    const certificates = deps.certificates(endpoint)
    grantableAt.set(name, clock.now() + certificates.length * MS_A_NAME)
    await applier.apply({ kind: Role, live: children.roles }, roleOf(endpoint, certificates))
  }

  /** Updates the certificate for unknown hosts. On an error, edges keep serving and it is tried again later. */
  async function keepUnknownHosts(endpoint: TunnelEndpoint) {
    const { name } = endpoint.metadata
    try {
      return await keepUnknownHostsSecret(endpoint)
    } catch (err) {
      logger.warn({ err, endpoint: name }, 'the certificate for unknown hosts could not be updated')
      later(name, POLL_MS)
      return endpoint.status?.strangersCertificate
    }
  }

  /** Schedules a reconcile. Of two schedules the earlier one is kept, as each reconcile covers everything. */
  function later(name: string, ms: number): void {
    const at = clock.now() + ms
    if ((waiting.get(name)?.at ?? Infinity) <= at) return
    callOff(name)
    const timer = clock.after(ms, () => {
      waiting.delete(name)
      changed(name)
    })
    waiting.set(name, { at, callOff: timer })
  }

  function callOff(name: string): void {
    waiting.get(name)?.callOff()
    waiting.delete(name)
  }

  async function guard(endpoint: TunnelEndpoint): Promise<void> {
    const policies = { kind: NetworkPolicy, live: children.policies }
    if (settings.networkPolicy) {
      await applier.apply(policies, networkPolicyOf(endpoint))
      return
    }
    const key = keyIn(edgeName(endpoint.metadata.name))
    if (children.policies.get(key)) await ignoringGone(store.delete(NetworkPolicy, key))
  }

  return {
    async ensure(endpoint) {
      if (stopping.signal.aborted) return { ready: 0 }
      await children.synced()
      const { name } = endpoint.metadata
      children.know(name)
      const account = await admit(endpoint)
      const service = await applier.apply({ kind: Service, live: children.services }, serviceOf(endpoint, settings))
      await applier.apply({ kind: Service, live: children.services }, meshServiceOf(endpoint))
      await applier.apply({ kind: PodDisruptionBudget, live: children.budgets }, disruptionBudgetOf(endpoint))
      const deployments = { kind: Deployment, live: children.deployments }
      const deployment = await applier.apply(deployments, deploymentOf(endpoint, settings, account))
      return {
        ...edgesState(deployment, children.pods(name)),
        addressPending: addressPending(service),
        strangersCertificate: await keepUnknownHosts(endpoint),
      }
    },
    async forget(name) {
      children.forget(name)
      secrets.forget(name)
      meshSecrets.forget(name)
      grantableAt.delete(name)
      callOff(name)
      await bindEdges(store, deps.endpoints)
    },
    async tunnelsChanged(name) {
      const endpoint = find(name)
      if (endpoint && children.known().includes(name)) await grant(endpoint)
    },
    pods: (endpoint) => children.pods(endpoint),
    synced: () => children.synced(),
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    async close() {
      stopping.abort()
      for (const name of [...waiting.keys()]) callOff(name)
      await running
    },
  }
}
