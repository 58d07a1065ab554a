import { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import type { Kind } from '../../crds/kind.ts'
import { ownerNamedBy, ownerText } from '../../shared/live-passwords.ts'
import type { Region } from '../../crds/region.ts'
import { Tunnel } from '../../crds/tunnel.ts'
import { takesTunnels, type TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import type { TunnelPassword } from '../../crds/tunnel-password.ts'
import type { Cache } from '../../store/cache.ts'
import { keyOf, type Key, type Store } from '../../store/port.ts'
import { createEndpointReconciler } from '../endpoint/reconciler.ts'
import type { EdgeRuntime } from '../endpoint/runtime.ts'
import type { Tenancy } from '../namespace/tenancy.ts'
import { admissibleIn, createQuota } from '../quota/quota.ts'
import type { Report } from '../reporter.ts'
import type { Controller, ControllerDeps } from '../runtime/controller.ts'
import { aspectChangesOf, changesOf, eventsOf, existenceOf, laterThan, objectsOf, specOf } from '../runtime/source.ts'
import type { Issuers } from './certificate-issuer.ts'
import { hasReferences } from './header-values.ts'
import { hasHostname } from './indexes.ts'
import { createPasswordReconciler } from './password.ts'
import { createTunnelReconciler, type TunnelReconcilerDeps } from './reconciler.ts'

export interface TunnelControllersDeps {
  readonly store: Store
  readonly regions: Cache<typeof Region>
  readonly endpoints: Cache<typeof TunnelEndpoint>
  /** Caches with the indexes of indexes.ts. */
  readonly tunnels: Cache<typeof Tunnel>
  readonly tunnelPasswords: Cache<typeof TunnelPassword>
  /** Databases, with the indexes of dedicated-database/indexes.ts. */
  readonly databases: Cache<typeof DedicatedDatabase>
  readonly issuers: Issuers
  readonly lastEvents?: TunnelReconcilerDeps['lastEvents']
  /** Whether the installation has several organizations. */
  readonly isShared?: (() => boolean) | undefined
  /** Default: every Namespace is a tenant's. */
  readonly tenancy?: Tenancy | undefined
  /** Maximum number of tunnels in a namespace. */
  readonly max: number
  readonly runtime: EdgeRuntime
  readonly report: Report
  readonly now: () => Date
  readonly controller: (about: Pick<ControllerDeps, 'name' | 'concurrency' | 'reconcile' | 'sources' | 'onFailure'>) => Controller
  /** Handler that reports the failures of a cache's objects, in addition to the log. */
  readonly failureReporter: (cache: Cache<Kind>) => ControllerDeps['onFailure']
}

/** Delay of an endpoint's tunnel count, which is for people only: changes within it are one write. */
const COUNT_AFTER_MS = 2_000
/** Delay of permissions: tunnels created together are admitted by one write. */
const ADMIT_AFTER_MS = 100

/** Creates the controllers of tunnels, their passwords, and the endpoints that serve them. */
export function createTunnelControllers(deps: TunnelControllersDeps): readonly Controller[] {
  const { regions, endpoints, tunnels, databases, tunnelPasswords, runtime, issuers, controller, failureReporter } = deps
  const quota = createQuota({ cache: tunnels, max: deps.max, hasBegun: hasHostname })

  /** Tunnels of an endpoint, and tunnels that wait for one. */
  const aroundEndpoint = ({ name }: Key): readonly Key[] => [...tunnels.byIndex('endpoint', name).map(keyOf), ...waiting()]
  const waiting = (): readonly Key[] =>
    regions.list().flatMap(({ spec }) => tunnels.byIndex('waiting', String(spec.regionId)).map(keyOf))
  const endpointOf = (key: Key): readonly Key[] => {
    const tunnel = tunnels.get(key)
    // The endpoint of a deleted tunnel is unknown.
    if (!tunnel) return endpoints.list().map(keyOf)
    return tunnel.status?.endpointRef ? [{ name: tunnel.status.endpointRef.name }] : []
  }
  const endpointOfDatabase = (key: Key): readonly Key[] => {
    const database = databases.get(key)
    if (!database) return endpoints.list().map(keyOf)
    return database.status?.sshTunnel ? [{ name: database.status.sshTunnel.endpointRef.name }] : []
  }
  const sshEndpointOf = ({ status }: DedicatedDatabase): string => status?.sshTunnel?.endpointRef.name ?? ''
  /** Aspect of a tunnel that its endpoint depends on. */
  const addressOf = ({ status }: Tunnel): string => `${status?.endpointRef?.name ?? ''}/${status?.hostname ?? ''}`
  /** Aspect of a tunnel that the permissions of its edges depend on. */
  const readOf = (tunnel: Tunnel): string => `${addressOf(tunnel)} ${hasReferences(tunnel)}`
  const passwordsOf =
    (kind: string) =>
    ({ namespace, name }: Key): readonly Key[] =>
      tunnelPasswords.byIndex('owner', ownerText({ kind, namespace, name })).map(keyOf)
  /**
   * Passwords that a change of one concerns. A deleted one frees a slot, of an unknown tunnel. A new one may precede others of its second.
   */
  const besidePassword = (key: Key): readonly Key[] => {
    const password = tunnelPasswords.get(key)
    if (!password || password.metadata.deletionTimestamp !== undefined)
      return tunnelPasswords.byIndex('tooMany', key.namespace ?? '').map(keyOf)
    const second = password.metadata.creationTimestamp
    const named = tunnelPasswords.byIndex('owner', ownerText(ownerNamedBy(password)))
    return named.filter(({ metadata }) => metadata.creationTimestamp === second).map(keyOf)
  }

  /** Tunnels of a certificate, by the name of its Secret. */
  const ordered = (secret: string): readonly Key[] => {
    const [, of = '', name = ''] = /^(tunnel|endpoint)-(.+)-certificate$/.exec(secret) ?? []
    return tunnels.byIndex(of === 'tunnel' ? 'hostname' : 'endpoint', name).map(keyOf)
  }

  return [
    ...(issuers.acme?.controllers(controller, failureReporter(endpoints)) ?? []),
    controller({
      name: 'tunnel-endpoint',
      concurrency: 1,
      onFailure: failureReporter(endpoints),
      reconcile: createEndpointReconciler(deps),
      sources: [
        objectsOf(endpoints),
        // The deletion of an endpoint frees its domain for another.
        existenceOf(endpoints, () => endpoints.list().map(keyOf)),
        changesOf(regions, () => endpoints.list().map(keyOf)),
        laterThan(aspectChangesOf(tunnels, addressOf, endpointOf), COUNT_AFTER_MS),
        laterThan(aspectChangesOf(databases, sshEndpointOf, endpointOfDatabase), COUNT_AFTER_MS),
        eventsOf((enqueue) => runtime.onChange((name) => enqueue({ name }))),
        eventsOf((enqueue) => issuers.acme?.onEndpoint((name) => enqueue({ name })) ?? (() => undefined)),
      ],
    }),
    controller({
      name: 'tunnel-admission',
      concurrency: 1,
      onFailure: failureReporter(endpoints),
      async reconcile({ name }) {
        await runtime.tunnelsChanged?.(name)
        return { result: 'settled', reason: 'TunnelsAdmitted' }
      },
      sources: [laterThan(aspectChangesOf(tunnels, readOf, endpointOf), ADMIT_AFTER_MS)],
    }),
    controller({
      name: 'tunnel',
      concurrency: 8,
      onFailure: failureReporter(tunnels),
      reconcile: createTunnelReconciler({ ...deps, quota }),
      sources: [
        objectsOf(tunnels),
        aspectChangesOf(
          endpoints,
          (endpoint) => `${specOf(endpoint)} ${takesTunnels(endpoint)} ${JSON.stringify(endpoint.status?.certificate)}`,
          aroundEndpoint,
        ),
        changesOf(regions, waiting),
        admissibleIn(tunnels, quota),
        ...(deps.tenancy?.changes((namespace) => tunnels.list({ namespace }).map(keyOf)) ?? []),
        eventsOf((enqueue) => issuers.acme?.onChange((secret) => ordered(secret).forEach(enqueue)) ?? (() => undefined)),
      ],
    }),
    controller({
      name: 'tunnel-password',
      concurrency: 2,
      onFailure: failureReporter(tunnelPasswords),
      reconcile: createPasswordReconciler({ ...deps, passwords: tunnelPasswords }),
      sources: [
        objectsOf(tunnelPasswords),
        aspectChangesOf(tunnelPasswords, specOf, besidePassword),
        aspectChangesOf(tunnels, ({ metadata }) => metadata.uid, passwordsOf(Tunnel.kind)),
        aspectChangesOf(
          databases,
          ({ metadata, spec }) => `${metadata.uid} ${spec.sshTunnel !== undefined}`,
          passwordsOf(DedicatedDatabase.kind),
        ),
      ],
    }),
  ]
}
