import { isDeepStrictEqual } from 'node:util'
import { channel } from 'node:diagnostics_channel'
import type { Condition, Kind, Resource, StatusOf } from '../crds/kind.ts'
import { type Conditioned, type Decision, withCondition } from '../store/conditions.ts'
import { ignoringGone, isStoreError, keyOf, type Store } from '../store/port.ts'

export interface ReporterDeps {
  readonly store: Store
  readonly now: () => Date
}

/**
 * Fields of a status beside its `Ready` condition: `null` removes a field, undefined keeps it. `conditions` replaces all other conditions;
 * without it, they stay.
 */
export type StatusFields<K extends Kind> = { readonly [P in keyof StatusOf<K>]?: StatusOf<K>[P] | null | undefined }

/**
 * Writes the `Ready` condition of an object, with other fields of its status. A status that would not change is not sent, so that a restart
 * over thousands of settled objects costs no request. A deleted object is skipped. The write applies to the observed status only: a slow
 * reconcile, or one of a former leader, overwrites nothing newer.
 * @throws StoreError `conflict` when another object has the name now, or the status has changed
 */
export type Report = <K extends Kind>(kind: K, object: Resource<K>, decision: Decision, fields?: StatusFields<K>) => Promise<void>

export function createReporter({ store, now }: ReporterDeps): Report {
  return async function report(kind, object, decision, fields) {
    const { generation, uid } = object.metadata
    const before: Conditioned['status'] = (object as Conditioned).status
    const { conditions: others, ...rest } = (fields ?? {}) as { readonly conditions?: readonly Condition[] }
    const conditions = withCondition(others ?? before?.conditions, decision, { type: 'Ready', generation, now: now() })
    const status = { observedGeneration: generation, conditions, ...rest }
    if (isIncluded(before ?? {}, status)) return
    await ignoringGone(write(kind, object, { uid, status }))
  }

  async function write<K extends Kind>(kind: K, object: Resource<K>, { uid, status }: StatusWrite): Promise<void> {
    const key = keyOf(object)
    let { resourceVersion } = object.metadata
    for (;;) {
      try {
        await store.patchStatus(kind, key, status, { uid, resourceVersion })
        return
      } catch (error) {
        if (!isStoreError(error, 'conflict')) throw error
        const current = await store.get(kind, key)
        if (!current || current.metadata.resourceVersion === resourceVersion || !hasSameStatus(current, object)) throw error
        // Only spec or metadata changed: the next reconcile handles that, and this condition names its generation.
        resourceVersion = current.metadata.resourceVersion
      }
    }
  }
}

interface StatusWrite {
  readonly uid: string
  readonly status: object
}

function hasSameStatus(current: Resource<Kind>, object: Resource<Kind>): boolean {
  const statusOf = (of: Resource<Kind>): unknown => (of as Conditioned).status ?? {}
  return current.metadata.uid === object.metadata.uid && isDeepStrictEqual(statusOf(current), statusOf(object))
}

/** Whether a merge patch with `wanted` would leave `before` unchanged. */
function isIncluded(before: object, desired: object): boolean {
  const known = new Map<string, unknown>(Object.entries(before))
  return Object.entries(desired).every(
    ([name, value]) => value === undefined || isDeepStrictEqual(known.get(name) ?? null, value),
  )
}

const steps = channel('mooring.step')

/**
 * Publishes on the diagnostics channel `mooring.step` that a step of a claim, reset, rotation or deletion is done (`claim.secret`,
 * `claim.engine` …), as `{name, key}`. The channel has no subscriber in production. Fault tests end the process at each step, to prove that
 * any step may be the last before a crash.
 */
export function stepDone(name: string, key: string): void {
  if (steps.hasSubscribers) steps.publish({ name, key })
}
