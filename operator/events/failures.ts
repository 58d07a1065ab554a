import { DELETION_HELD, ServerReason, TRANSACTION_IDS_LOW, UPDATE_HELD } from '../../crds/database-server.ts'
import type { Condition, Kind, Resource } from '../../crds/kind.ts'
import { EXTENSIONS_INSTALLED } from '../../crds/shared-instance.ts'
import { ADDRESSES_USABLE, HEADERS_USABLE, HOSTNAME_KEPT, KEYS_USABLE, type Tunnel } from '../../crds/tunnel.ts'
import { CERTIFICATE_EXPIRING } from '../../crds/tunnel-endpoint.ts'
import { MooringError } from '../../shared/errors.ts'
import { type Clock, systemClock } from '../../shared/timers.ts'
import type { Cache } from '../../store/cache.ts'
import { type Conditioned, conditionOf } from '../../store/conditions.ts'
import { type Key, StoreCode } from '../../store/port.ts'
import type { Events, Failure } from './events.ts'
import { meaningOf } from './reasons.ts'

/** Reason of the event about a certificate that could not be obtained. The tunnel stays ready while its former certificate is valid. */
const CERTIFICATE_FAILED = 'CertificateFailed'

/** Condition types that are present only while something is wrong, whatever `Ready` is. */
const ALARMS = [
  ...[KEYS_USABLE, ADDRESSES_USABLE, HEADERS_USABLE, HOSTNAME_KEPT, EXTENSIONS_INSTALLED],
  ...[TRANSACTION_IDS_LOW, DELETION_HELD, UPDATE_HELD, CERTIFICATE_EXPIRING],
]

type ConditionFailure = Pick<Failure, 'reason' | 'note'>

/** Failures in an object's status. Pure. */
export function failuresOf(object: Resource<Kind>): readonly ConditionFailure[] {
  const alarms = ALARMS.flatMap((type) => alarmOf(conditionOf(object as Conditioned, type)))
  const ready = whyNotReady(object)
  return [...(ready ? [ready] : []), ...alarms]
}

function alarmOf(condition: Condition | undefined): readonly ConditionFailure[] {
  if (!condition) return []
  const { type, reason, message } = condition
  // The replacement of a server by one with a new spec is under way.
  if (type === UPDATE_HELD && reason === ServerReason.Updating) return []
  // Its message has a number, each value of which would be another failure.
  return [{ reason, note: type === DELETION_HELD ? 'it is deleted after the last instance on it' : message }]
}

function whyNotReady(object: Resource<Kind>): ConditionFailure | undefined {
  const ready = conditionOf(object as Conditioned, 'Ready')
  if (ready?.status === 'False' && meaningOf(ready.reason) === 'failure') return { reason: ready.reason, note: ready.message }
  const { lastError } = (object as Partial<Tunnel>).status?.certificate ?? {}
  if (lastError === undefined) return undefined
  return { reason: CERTIFICATE_FAILED, note: `its certificate could not be obtained: ${lastError}` }
}

/** Step towards ready that an object waits at; undefined when it waits at none, or the reason is reported already. Pure. */
function stepOf(object: Resource<Kind>): ConditionFailure | undefined {
  const ready = conditionOf(object as Conditioned, 'Ready')
  if (ready?.status !== 'False' || meaningOf(ready.reason) !== 'step' || whyNotReady(object)) return undefined
  return { reason: ready.reason, note: ready.message }
}

/** Time in ms after which a step towards ready is reported as a failure. */
export const LATE_MS = 60_000

const idOf = ({ namespace = '', name }: Key): string => `${namespace}/${name}`

/**
 * Reports each new failure in a status once, and each step towards ready that lasts {@link LATE_MS}. Failures present at the start were reported
 * before it. Call it once the cache has synced.
 * @returns a function that unsubscribes
 */
export function reportFailures(cache: Cache<Kind>, events: Events, clock: Clock = systemClock): () => void {
  const reported = new Map<string, ReadonlySet<string>>()
  const tell = (object: Resource<Kind>, failure: ConditionFailure) =>
    events.failure({ kind: cache.kind, metadata: object.metadata, ...failure })
  const late = createLateSteps(cache, { tell, clock })

  /** @returns failures of the object that were not reported yet */
  function note(object: Resource<Kind>): readonly ConditionFailure[] {
    const id = idOf(object.metadata)
    const before = reported.get(id)
    const now = new Map(failuresOf(object).map((failure) => [JSON.stringify([object.metadata.uid, failure]), failure]))
    if (now.size === 0) reported.delete(id)
    else reported.set(id, new Set(now.keys()))
    return [...now].flatMap(([text, failure]) => (before?.has(text) ? [] : [failure]))
  }

  for (const object of cache.list()) {
    note(object)
    late.note(object)
  }
  const unsubscribe = cache.onChange((key) => {
    const object = cache.get(key)
    if (object) for (const failure of note(object)) tell(object, failure)
    else reported.delete(idOf(key))
    if (object) late.note(object)
    else late.forget(key)
  })
  return () => {
    unsubscribe()
    late.stop()
  }
}

interface LateDeps {
  readonly tell: (object: Resource<Kind>, failure: ConditionFailure) => void
  readonly clock: Clock
}

/** Step of one object. */
interface Step {
  readonly uid: string
  readonly reason: string
  /** Note of the failure, once the step was reported. */
  note?: string
  cancel: () => void
}

/** Reports steps that last {@link LATE_MS}, each once, and again when its message has changed for as long. */
function createLateSteps(cache: Cache<Kind>, { tell, clock }: LateDeps) {
  const steps = new Map<string, Step>()

  function forget(key: Key): void {
    steps.get(idOf(key))?.cancel()
    steps.delete(idOf(key))
  }

  function arm(key: Key, step: Step): void {
    step.cancel = clock.after(LATE_MS, () => {
      const object = cache.get(key)
      const now = object && stepOf(object)
      if (!now || object.metadata.uid !== step.uid || now.note === step.note) return
      step.note = now.note
      tell(object, now)
    })
  }

  function note(object: Resource<Kind>): void {
    const { namespace, name, uid } = object.metadata
    const key = { namespace, name }
    const now = stepOf(object)
    const before = steps.get(idOf(key))
    if (!now) {
      forget(key)
    } else if (before?.uid !== uid || before.reason !== now.reason) {
      forget(key)
      const step: Step = { uid, reason: now.reason, cancel: () => undefined }
      steps.set(idOf(key), step)
      arm(key, step)
    } else if (before.note !== undefined && before.note !== now.note) {
      before.cancel()
      arm(key, before)
    }
  }

  return {
    note,
    forget,
    stop: () => {
      for (const { cancel } of steps.values()) cancel()
      steps.clear()
    },
  }
}

/** Calls {@link reportFailures} when the cache has synced. @returns a function that stops it, before or after that */
export function reportFailuresOnceSynced(cache: Cache<Kind>, events: Events): () => void {
  let unsubscribe: (() => void) | undefined
  let stopped = false
  void cache.synced().then(() => {
    if (!stopped) unsubscribe = reportFailures(cache, events)
  })
  return () => {
    stopped = true
    unsubscribe?.()
  }
}

/** Reason of the event about a reconcile that threw. */
const RECONCILE_FAILED = 'ReconcileFailed'

/** Creates a handler that reports the error of a failed reconcile of an object of `cache`. Write conflicts are not reported. */
export function reporterOf(events: Events, cache: Cache<Kind>): (key: Key, error: unknown) => void {
  return function report(key, error) {
    const object = cache.get(key)
    if (!object || (error instanceof MooringError && error.code === StoreCode.conflict)) return
    // Foreign errors may quote their input, a password included.
    const note =
      error instanceof MooringError ? `${error.code}: ${error.message}` : 'unexpected error: see the log of the operator'
    events.failure({ kind: cache.kind, metadata: object.metadata, reason: RECONCILE_FAILED, note })
  }
}
