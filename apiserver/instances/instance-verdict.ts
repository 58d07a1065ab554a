import { InstanceReason, isClaimed, type SharedInstance } from '../../crds/shared-instance.ts'
import { conditionOf } from '../../store/conditions.ts'
import { type ApiCode, ApiError } from '../http/errors.ts'

/** Reasons after which waiting is of no use, with the answer each becomes. */
const REFUSALS: ReadonlyMap<string, Refusal> = new Map<string, Refusal>([
  // Two API servers at once, or one and kubectl: it was within the quota when it came.
  [InstanceReason.QuotaExceeded, { code: 'quota_exceeded' }],
  [InstanceReason.UnknownRegion, { code: 'unknown_region', field: 'region' }],
  [InstanceReason.UnsupportedMotor, { code: 'unsupported_motor', field: 'motor' }],
  [InstanceReason.TemplateNotFound, { code: 'invalid_request', field: 'template' }],
])

interface Refusal {
  readonly code: ApiCode
  /** Of the body, that is wrong; absent when none is. */
  readonly field?: string
}

/** Reasons for which a claimed instance gives no logins: it is as it was wished or must be, so waiting is of no use either. */
const STANDING: ReadonlySet<string> = new Set([InstanceReason.Disabled, InstanceReason.SizeExceeded])

/** Seconds after which a caller of a POST that ran out of time may try again. */
const RETRY_AFTER = '5'

/**
 * Where a claim stands: the instance when its database works or is switched off, undefined while it is under way.
 * @throws ApiError when the operator refused it, or somebody deletes it
 */
export function claimOutcome(instance: SharedInstance): SharedInstance | undefined {
  if (instance.metadata.deletionTimestamp !== undefined) throw deletedMeanwhile()
  const condition = conditionOf(instance, 'Ready')
  if (!condition || (condition.observedGeneration ?? 0) < instance.metadata.generation) return undefined
  if (condition.status === 'True') return instance
  // Whatever becomes of it, a repeated request is not refused it.
  if (isClaimed(instance)) return STANDING.has(condition.reason) ? instance : undefined
  const refusal = REFUSALS.get(condition.reason)
  if (!refusal) return undefined
  const { code, field } = refusal
  const { message } = condition
  throw new ApiError(code, message, { details: field === undefined ? [] : [{ field, message }] })
}

export const deletedMeanwhile = () => new ApiError('conflict', 'another request deleted this database meanwhile')

/** The answer to a claim that ran out of time. `last` is the instance as last seen. */
export function claimOverdue(last: SharedInstance | undefined): ApiError {
  const condition = last && conditionOf(last, 'Ready')
  if (last && !isClaimed(last) && condition?.reason === InstanceReason.TemplateInUse) {
    return new ApiError('conflict', 'the template has open sessions and cannot be copied; end them and try again')
  }
  return tooLate(`the database did not become ready in time; try again in ${RETRY_AFTER} s`)
}

export function tooLate(message: string): ApiError {
  return new ApiError('unavailable', message, { headers: { 'Retry-After': RETRY_AFTER } })
}

/** Whether the operator has carried out `spec.enabled` as of `generation`. An instance past its size stays disabled whatever is wished. */
export function isSwitched({ spec, status, metadata }: SharedInstance, generation: number): boolean {
  if (metadata.generation < generation || (status?.observedGeneration ?? 0) < generation) return false
  const ready = conditionOf({ status }, 'Ready')
  return status?.isEnabled === spec.enabled || (ready?.reason === InstanceReason.SizeExceeded && status?.isEnabled === false)
}
