import { type ApiToken, endOfApiToken } from '../../crds/api-token.ts'
import type { Organization } from '../../crds/organization.ts'
import type { Plan } from '../../crds/plan.ts'
import type { Region } from '../../crds/region.ts'
import type { Cache } from '../../store/cache.ts'
import { keyOf } from '../../store/key-string.ts'
import type { Report } from '../reporter.ts'
import type { Controller, ControllerDeps } from '../runtime/controller.ts'
import { changesOf, objectsOf } from '../runtime/source.ts'
import { createCatalogReconciler } from './reconciler.ts'
import { apiTokenDecision, organizationDecision, planDecision, regionDecision } from './decisions.ts'

export interface CatalogControllersDeps {
  readonly regions: Cache<typeof Region>
  readonly plans: Cache<typeof Plan>
  readonly organizations: Cache<typeof Organization>
  readonly apiTokens: Cache<typeof ApiToken>
  readonly report: Report
  readonly now: () => Date
  readonly controller: (about: Pick<ControllerDeps, 'name' | 'concurrency' | 'reconcile' | 'sources'>) => Controller
}

/** Creates a controller for each kind that is only data: regions, plans, organizations and API tokens. */
export function createCatalogControllers(deps: CatalogControllersDeps): readonly Controller[] {
  const { regions, plans, organizations, apiTokens, report, controller } = deps
  const now = () => deps.now().getTime()
  const about = { report }
  return [
    controller({
      ...{ name: 'region', concurrency: 1, sources: [objectsOf(regions)] },
      reconcile: createCatalogReconciler({ ...about, cache: regions, decide: regionDecision }),
    }),
    controller({
      ...{ name: 'plan', concurrency: 1, sources: [objectsOf(plans), changesOf(regions, () => plans.list().map(keyOf))] },
      reconcile: createCatalogReconciler({ ...about, cache: plans, decide: (plan) => planDecision(plan, regions.list()) }),
    }),
    controller({
      ...{ name: 'organization', concurrency: 1, sources: [objectsOf(organizations)] },
      reconcile: createCatalogReconciler({ ...about, cache: organizations, decide: organizationDecision }),
    }),
    controller({
      ...{ name: 'api-token', concurrency: 1, sources: [objectsOf(apiTokens)] },
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
