import { type ApiToken, endOfApiToken } from '../../crds/api-token.ts'
import type { Organization } from '../../crds/organization.ts'
import type { DatabaseServer } from '../../crds/database-server.ts'
import type { Plan } from '../../crds/plan.ts'
import type { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import type { Region } from '../../crds/region.ts'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import type { Tunnel } from '../../crds/tunnel.ts'
import type { Cache } from '../../store/cache.ts'
import { keyOf, type Key } from '../../store/port.ts'
import type { Report, StatusFields } from '../reporter.ts'
import type { Controller, ControllerDeps, Outcome } from '../runtime/controller.ts'
import { aspectChangesOf, changesOf, existenceOf, laterThan, objectsOf } from '../runtime/source.ts'
import { apiTokenDecision, organizationDecision, planDecision, regionCounts, regionDecision } from './decisions.ts'
import type { Kind, Resource } from '../../crds/kind.ts'
import { conditionOf, type Decision } from '../../store/conditions.ts'

export interface CatalogControllersDeps {
  readonly regions: Cache<typeof Region>
  readonly plans: Cache<typeof Plan>
  readonly organizations: Cache<typeof Organization>
  readonly apiTokens: Cache<typeof ApiToken>
  readonly servers: Cache<typeof DatabaseServer>
  readonly instances: Cache<typeof SharedInstance>
  readonly databases: Cache<typeof DedicatedDatabase>
  /** Absent in deployments without edges. */
  readonly tunnels?: Cache<typeof Tunnel> | undefined
  readonly report: Report
  readonly now: () => Date
  readonly controller: (about: Pick<ControllerDeps, 'name' | 'concurrency' | 'reconcile' | 'sources'>) => Controller
}

/** Delay of the counts of a region's databases and tunnels: changes within it are one write. */
const COUNT_AFTER_MS = 2_000

/** Creates a controller for each kind that is only data: regions, plans, organizations and API tokens. */
export function createCatalogControllers(deps: CatalogControllersDeps): readonly Controller[] {
  const { regions, plans, organizations, apiTokens, servers, instances, databases, tunnels, report, controller } = deps
  const now = () => deps.now().getTime()
  const about = { report }
  const allRegions = () => regions.list().map(keyOf)
  const allPlans = () => plans.list().map(keyOf)
  const readinessOf = (server: DatabaseServer): string => `${server.spec.motor} ${conditionOf(server, 'Ready')?.reason}`
  return [
    controller({
      name: 'region',
      concurrency: 1,
      // Only creations and deletions count: the region of an object never changes.
      sources: [
        objectsOf(regions),
        existenceOf(regions, allRegions),
        aspectChangesOf(servers, readinessOf, allRegions),
        ...[instances, databases, ...(tunnels ? [tunnels] : [])].map((cache) =>
          laterThan(existenceOf<Kind>(cache, allRegions), COUNT_AFTER_MS),
        ),
      ],
      reconcile: createCatalogReconciler({
        ...about,
        cache: regions,
        decide: (region) => regionDecision(region, regions.list(), servers.list()),
        statusFields: (region) =>
          regionCounts(region, {
            regions: regions.list(),
            instances: instances.list(),
            databases: databases.list(),
            tunnels: tunnels?.list() ?? [],
          }),
      }),
    }),
    controller({
      name: 'plan',
      concurrency: 1,
      sources: [objectsOf(plans), changesOf(regions, allPlans), aspectChangesOf(servers, readinessOf, allPlans)],
      reconcile: createCatalogReconciler({
        ...about,
        cache: plans,
        decide: (plan) => planDecision(plan, regions.list(), servers.list()),
      }),
    }),
    controller({
      name: 'organization',
      concurrency: 1,
      sources: [objectsOf(organizations)],
      reconcile: createCatalogReconciler({ ...about, cache: organizations, decide: organizationDecision }),
    }),
    controller({
      name: 'api-token',
      concurrency: 1,
      sources: [objectsOf(apiTokens)],
      reconcile: createCatalogReconciler({
        ...about,
        cache: apiTokens,
        decide: (token) => apiTokenDecision(token, now()),
        statusFields: (token) => ({ expiresAt: new Date(endOfApiToken(token)).toISOString() }),
        againInMs: (token) => {
          const left = endOfApiToken(token) - now()
          return left > 0 ? left : undefined
        },
      }),
    }),
  ]
}

interface CatalogDeps<K extends Kind> {
  readonly cache: Cache<K>
  readonly report: Report
  /** Decides the object's Ready condition. */
  readonly decide: (object: Resource<K>) => Decision
  /** Other fields of its status. */
  readonly statusFields?: (object: Resource<K>) => StatusFields<K>
  /** Milliseconds until the condition may change without a change of the object; undefined for never. */
  readonly againInMs?: (object: Resource<K>) => number | undefined
}

/** Creates the reconciler of a kind that is only data: it reports whether an object can be used. */
export function createCatalogReconciler<K extends Kind>(deps: CatalogDeps<K>): (key: Key) => Promise<Outcome> {
  const { cache, report, decide, statusFields, againInMs = () => undefined } = deps
  return async function reconcileCatalog(key) {
    const object = cache.get(key)
    if (!object || object.metadata.deletionTimestamp !== undefined) return { result: 'settled', reason: 'Gone' }
    const decision = decide(object)
    await report(cache.kind, object, decision, statusFields?.(object))
    return { result: 'settled', reason: decision.reason, requeueAfterMs: againInMs(object) }
  }
}
