import { isDeepStrictEqual } from 'node:util'
import type { Condition, Kind, Resource, StatusOf } from '../crds/kind.ts'
import { type Conditioned, type Verdict, withCondition } from '../store/conditions.ts'
import { isStoreError } from '../store/errors.ts'
import { keyOf } from '../store/key-string.ts'
import type { Store } from '../store/port.ts'

export interface ReporterDeps {
  readonly store: Store
  readonly now: () => Date
}

/**
 * What a status says beside its `Ready` condition: `null` removes a field, undefined leaves it. `conditions` are all others that it is to
 * have; without them, those that it has stay.
 */
export type Findings<K extends Kind> = { readonly [P in keyof StatusOf<K>]?: StatusOf<K>[P] | null | undefined }

/**
 * Writes the verdict on an object as its `Ready` condition, with whatever else was found out. What its status says already is not even
 * sent, so that a restart over thousands of settled objects costs no request. Of an object that is gone nothing is said. It is said of the
 * very status that the verdict was reached over: a reconcile that took long, or was another leader's, takes nothing back.
 * @throws StoreError `conflict` when another object has its name by now, or its status has changed
 */
export type Report = <K extends Kind>(kind: K, object: Resource<K>, verdict: Verdict, findings?: Findings<K>) => Promise<void>

export function createReporter({ store, now }: ReporterDeps): Report {
  return async function report(kind, object, verdict, findings) {
    const { generation, uid } = object.metadata
    const before: Conditioned['status'] = (object as Conditioned).status
    const { conditions: others, ...rest } = (findings ?? {}) as { readonly conditions?: readonly Condition[] }
    const conditions = withCondition(others ?? before?.conditions, verdict, { type: 'Ready', generation, now: now() })
    const status = { observedGeneration: generation, conditions, ...rest }
    if (says(before ?? {}, status)) return
    try {
      await write(kind, object, { uid, status })
    } catch (error) {
      if (!isStoreError(error, 'not_found')) throw error
    }
  }

  async function write<K extends Kind>(kind: K, object: Resource<K>, { uid, status }: Said): Promise<void> {
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
        // Only its wish, or its marks, are others by now: the next reconcile has that in view, and this verdict names its generation.
        resourceVersion = current.metadata.resourceVersion
      }
    }
  }
}

interface Said {
  readonly uid: string
  readonly status: object
}

function hasSameStatus(current: Resource<Kind>, object: Resource<Kind>): boolean {
  const statusOf = (of: Resource<Kind>): unknown => (of as Conditioned).status ?? {}
  return current.metadata.uid === object.metadata.uid && isDeepStrictEqual(statusOf(current), statusOf(object))
}

/** True when a merge patch with `wanted` would leave `before` as it is. */
function says(before: object, wanted: object): boolean {
  const known = new Map<string, unknown>(Object.entries(before))
  return Object.entries(wanted).every(([name, value]) => value === undefined || isDeepStrictEqual(known.get(name) ?? null, value))
}
