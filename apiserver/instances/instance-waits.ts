import { type SharedInstance, InstanceReason, isClaimed, isExtensionReason } from '../../crds/shared-instance.ts'
import type { Cache } from '../../store/cache.ts'
import type { Store } from '../../store/port.ts'
import { type Credentials, readCredentials } from './instance-view.ts'
import { withinBudget, whenGone } from '../resources/cache-waits.ts'
import { credentialsInForce } from '../resources/password-in-force.ts'
import { conditionOf } from '../../store/conditions.ts'
import { type ApiCode, ApiError } from '../http/errors.ts'

export interface InstanceWaitsDeps {
  readonly store: Store
  readonly instances: Cache<typeof SharedInstance>
  /** Time budget of a request in milliseconds, except for a deletion. */
  readonly changeMs: number
  /** Maximum wait of a creation for the sessions of its template to end, in milliseconds. */
  readonly templateMs: number
  readonly deleteMs: number
}

/**
 * Waits on the cache without polling. An object of the same name with another uid does not count. The time budget starts at `arrivedAt`, the
 * arrival of the request (`performance.now()`).
 */
export interface InstanceWaits {
  /**
   * Waits until the database of a new instance works; for sessions that are open on its template, `templateMs` at most.
   * @throws ApiError when the operator rejects it, another request deletes it, or the time budget is used up
   */
  claimed(created: SharedInstance, arrivedAt: number): Promise<SharedInstance>
  /** Waits until `settled` holds; undefined when the time budget is used up. @throws ApiError `conflict` when the instance is deleted */
  changed(
    changed: SharedInstance,
    settled: (now: SharedInstance) => boolean,
    arrivedAt: number,
  ): Promise<SharedInstance | undefined>
  /**
   * Waits until the status of a claimed instance names the password of its Secret as the one in force. Returns both.
   * @throws ApiError `unavailable` when the time budget is used up, or at once when the instance is not claimed; `conflict` when another
   * request deletes it; StoreError
   */
  granted(claimed: SharedInstance, arrivedAt: number): Promise<Granted>
  /** Waits until the object is gone from the store; false when the time budget is used up. */
  gone(deleted: SharedInstance, arrivedAt: number): Promise<boolean>
}

/** Instance with the credentials that are in force by its status. */
export interface Granted {
  readonly instance: SharedInstance
  readonly credentials: Credentials
}

/** Returns the remaining milliseconds of a budget; a wait of 0 still checks the cache once. */
const left = (ms: number, arrivedAt: number): number => Math.max(0, ms - (performance.now() - arrivedAt))

export function createInstanceWaits({ store, instances, changeMs, templateMs, deleteMs }: InstanceWaitsDeps): InstanceWaits {
  /** Returns a check for `waitFor` that ignores the cache until it has the object, and throws once the object is gone. */
  function follow<T>(
    of: SharedInstance,
    resultOf: (now: SharedInstance) => T | undefined,
  ): (now?: SharedInstance) => T | undefined {
    let seen = false
    return function check(now) {
      const isIt = now?.metadata.uid === of.metadata.uid
      if (!isIt && seen) throw deletedMeanwhile()
      if (!isIt) return undefined
      seen = true
      return resultOf(now)
    }
  }

  async function claimed(created: SharedInstance, arrivedAt: number): Promise<SharedInstance> {
    const check = follow(created, claimOutcome)
    const until = (ms: number, condition: typeof check) =>
      withinBudget(Math.min(ms, left(changeMs, arrivedAt)), (signal) => instances.waitFor(created.metadata, condition, signal))
    const first = await until(changeMs, (now) => check(now) ?? (waitsForTemplate(now) ? now : undefined))
    const ready = waitsForTemplate(first) ? await until(templateMs, check) : first
    if (ready) return ready
    throw claimTimeout(instances.byUid(created.metadata.uid))
  }

  async function changed(...[of, settled, arrivedAt]: Parameters<InstanceWaits['changed']>): Promise<SharedInstance | undefined> {
    const check = follow(of, (now) => (settled(now) ? now : undefined))
    return withinBudget(left(changeMs, arrivedAt), (signal) => instances.waitFor(of.metadata, check, signal))
  }

  async function granted(claimed: SharedInstance, arrivedAt: number): Promise<Granted> {
    if (claimed.status?.secretRef === undefined)
      throw retryLater(`this database has no credentials yet; try again in ${RETRY_AFTER} s`)
    const found = await credentialsInForce(claimed, {
      read: (now) => readCredentials(store, now),
      next: (now, isLater) => changed(now, (seen) => isLater(requireThere(seen)), arrivedAt),
    })
    if (!found) throw retryLater(`the password of this database is being replaced; try again in ${RETRY_AFTER} s`)
    return { instance: found.object, credentials: found.credentials }
  }

  async function gone(deleted: SharedInstance, arrivedAt: number): Promise<boolean> {
    const outcome = await withinBudget(left(deleteMs, arrivedAt), (signal) => whenGone(instances, deleted, signal))
    return outcome !== undefined
  }

  return { claimed, changed, granted, gone }
}

/** Returns the instance. @throws ApiError `conflict` when another request deletes it */
function requireThere(instance: SharedInstance): SharedInstance {
  if (instance.metadata.deletionTimestamp !== undefined) throw deletedMeanwhile()
  return instance
}

/** Final reasons of a claim that failed, with the answer of each. */
const REJECTIONS: ReadonlyMap<string, Rejection> = new Map<string, Rejection>([
  // Possible when two API servers, or one and kubectl, create instances at the same time.
  [InstanceReason.QuotaExceeded, { code: 'quota_exceeded' }],
  [InstanceReason.UnknownRegion, { code: 'unknown_region', field: 'region' }],
  [InstanceReason.UnsupportedMotor, { code: 'unsupported_motor', field: 'motor' }],
  [InstanceReason.TemplateNotFound, { code: 'invalid_request', field: 'template' }],
  [InstanceReason.TemplateNotCopyable, { code: 'invalid_request', field: 'template' }],
])

interface Rejection {
  readonly code: ApiCode
  /** Invalid field of the body; absent when the body is valid. */
  readonly field?: string
}

/** Final reasons of a claimed instance that accepts no logins. */
const WITHOUT_LOGIN: ReadonlySet<string> = new Set([
  InstanceReason.Disabled,
  InstanceReason.SizeExceeded,
  InstanceReason.Suspended,
])

/** Whether a claimed instance is as ready as it gets. */
const isDone = (reason: string): boolean => WITHOUT_LOGIN.has(reason) || isExtensionReason(reason)

/** Whether a new instance waits for the sessions of its template to end. */
function waitsForTemplate(instance: SharedInstance | undefined): instance is SharedInstance {
  if (!instance || isClaimed(instance)) return false
  return conditionOf(instance, 'Ready')?.reason === InstanceReason.TemplateInUse
}

/** `Retry-After`, in seconds, of a request that used up its time budget. */
const RETRY_AFTER = '5'

/**
 * Returns the result of a claim: the instance when its database works, if without an extension, or is switched off; undefined while the claim is in progress.
 * @throws ApiError when the operator rejected the claim or another request deletes the instance
 */
export function claimOutcome(instance: SharedInstance): SharedInstance | undefined {
  if (instance.metadata.deletionTimestamp !== undefined) throw deletedMeanwhile()
  const condition = conditionOf(instance, 'Ready')
  if (!condition || (condition.observedGeneration ?? 0) < instance.metadata.generation) return undefined
  if (condition.status === 'True') return instance
  // A claimed instance is never rejected, so a repeated request finds it.
  if (isClaimed(instance)) return isDone(condition.reason) ? instance : undefined
  const rejection = REJECTIONS.get(condition.reason)
  if (!rejection) return undefined
  const { code, field } = rejection
  const { message } = condition
  throw new ApiError(code, message, { details: field === undefined ? [] : [{ field, message }] })
}

const deletedMeanwhile = () => new ApiError('conflict', 'another request deleted this database meanwhile')

/** Creates the answer to a claim that used up its time budget. `last` is the last known state of the instance. */
export function claimTimeout(last: SharedInstance | undefined): ApiError {
  if (waitsForTemplate(last)) {
    const details = [{ field: 'template', message: 'has open sessions' }]
    return new ApiError('conflict', 'the template has open sessions and cannot be copied; end them and try again', { details })
  }
  return retryLater(`the database did not become ready in time; try again in ${RETRY_AFTER} s`)
}

/** Creates a 503 with `Retry-After`. */
export function retryLater(message: string): ApiError {
  return new ApiError('unavailable', message, { headers: { 'Retry-After': RETRY_AFTER } })
}

/** Whether the operator has applied `spec.enabled` of `generation`. An instance past its size limit, or a suspended one, stays disabled. */
export function isSwitched({ spec, status, metadata }: SharedInstance, generation: number): boolean {
  if (metadata.generation < generation || (status?.observedGeneration ?? 0) < generation) return false
  if (status?.isEnabled === spec.enabled) return true
  const ready = conditionOf({ status }, 'Ready')
  return status?.isEnabled === false && ready !== undefined && WITHOUT_LOGIN.has(ready.reason)
}
