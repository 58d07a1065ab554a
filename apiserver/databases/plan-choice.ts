import { type DedicatedDatabase, DatabaseReason } from '../../crds/dedicated-database.ts'
import type { Motor } from '../../crds/motor.ts'
import type { Plan } from '../../crds/plan.ts'
import { conditionOf } from '../../store/conditions.ts'
import { ApiError } from '../http/errors.ts'

/** Plan that a request names, and the engine and storage that it must fit. */
export interface RequestedPlan {
  readonly plan: string
  readonly engine: Motor
  /** Storage that the database has already, in GiB: storage only grows. 0 for a new database. */
  readonly storageGiB: number
}

/**
 * Returns the plan that a request names. Pure.
 * @throws ApiError with the plans that fit: `unknown_plan` when no plan has this id, or it does not allow the engine; `plan_too_small` when it
 *   has less storage than the database
 */
export function choosePlan(plans: readonly Plan[], requested: RequestedPlan): Plan {
  const plan = plans.find(({ metadata }) => metadata.name === requested.plan)
  if (!plan) throw rejectedPlan('unknown_plan', `unknown plan: ${requested.plan}`, { plans, requested })
  const { engines, storageGiB } = plan.spec
  if (!engines.includes(requested.engine)) {
    throw rejectedPlan('unknown_plan', `the plan ${requested.plan} is not for ${requested.engine}`, { plans, requested })
  }
  if (storageGiB < requested.storageGiB) {
    const message = `the plan ${requested.plan} has ${storageGiB} GiB of storage, and the database has ${requested.storageGiB} GiB: storage only grows`
    throw rejectedPlan('plan_too_small', message, { plans, requested })
  }
  return plan
}

interface Rejected {
  readonly plans: readonly Plan[]
  readonly requested: RequestedPlan
}

function rejectedPlan(code: 'unknown_plan' | 'plan_too_small', what: string, { plans, requested }: Rejected): ApiError {
  const { engine, storageGiB } = requested
  const fits = ({ spec }: Plan): boolean => spec.engines.includes(engine) && spec.storageGiB >= storageGiB
  const names = plans.filter(fits).map(({ metadata }) => metadata.name)
  const list = names.length > 0 ? `these fit: ${names.toSorted().join(', ')}` : 'no plan fits'
  const message = `${what}; ${list}`
  return new ApiError(code, message, { details: [{ field: 'plan', message }] })
}

/** Reasons of a database whose plan the operator has not put in force: the server keeps its storage. */
const REJECTED_PLANS: ReadonlySet<string> = new Set([
  DatabaseReason.UnknownPlan,
  DatabaseReason.PlanWithoutMotor,
  DatabaseReason.StorageShrinks,
  DatabaseReason.StorageNotExpandable,
])

/**
 * Returns the minimum storage of a database's next plan, in GiB: the storage of its server, or of the plan in its spec when that has more and
 * the operator has not rejected it. Pure.
 */
export function storageFloor({ metadata, spec, status }: DedicatedDatabase, plans: readonly Plan[]): number {
  const present = status?.storageGiB ?? 0
  const condition = conditionOf({ status }, 'Ready')
  const isCurrent = (condition?.observedGeneration ?? 0) >= metadata.generation
  if (isCurrent && condition && REJECTED_PLANS.has(condition.reason)) return present
  const requested = plans.find((plan) => plan.metadata.name === spec.plan)?.spec.storageGiB ?? 0
  return Math.max(present, requested)
}
