import type { Namespace } from '../../crds/core.ts'
import { TenantNamespace, TenantNamespaceReason } from '../../crds/tenant-namespace.ts'
import type { Key } from '../../store/port.ts'
import type { Report } from '../reporter.ts'
import type { Outcome } from '../runtime/controller.ts'
import { perform } from './apply.ts'
import { observe, type ObserveDeps } from './observe.ts'
import { type Action, planNamespace, type Observed } from './plan.ts'

export interface NamespaceDeps extends ObserveDeps {
  readonly report: Report
}

/**
 * Creates the reconciler that keeps each TenantNamespace in step with its Namespace of the same name, the RoleBindings of every tenant
 * namespace, and its organization. Keys are the names of either.
 */
export function createNamespaceReconciler(deps: NamespaceDeps): (key: Key) => Promise<Outcome> {
  /** Carries the actions out. @returns the resulting Namespace */
  async function apply(observed: Observed, actions: readonly Action[]): Promise<Namespace | undefined> {
    let { namespace } = observed
    for (const action of actions) namespace = (await perform(deps.store, { ...observed, namespace }, action)) ?? namespace
    return namespace
  }

  return async function reconcileNamespace({ name }) {
    const observed = await observe(deps, name)
    const { actions, decision, reason = decision?.reason ?? 'Nothing' } = planNamespace(observed)
    const namespace = await apply(observed, actions)
    if (!decision || !observed.tenant) return { result: 'settled', reason }
    const isBound = decision.reason === TenantNamespaceReason.Bound
    await deps.report(TenantNamespace, observed.tenant, decision, isBound ? { namespaceUid: namespace?.metadata.uid } : {})
    return { result: isBound ? 'settled' : 'waiting', reason }
  }
}
