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
 * sent, so that a restart over thousands of settled objects costs no request. Of an object that is gone nothing is said.
 * @throws StoreError `conflict` when another object has its name by now
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
      await store.patchStatus(kind, keyOf(object), status as object, { uid })
    } catch (error) {
      if (!isStoreError(error, 'not_found')) throw error
    }
  }
}

/** True when a merge patch with `wanted` would leave `before` as it is. */
function says(before: object, wanted: object): boolean {
  const known = new Map<string, unknown>(Object.entries(before))
  return Object.entries(wanted).every(([name, value]) => value === undefined || isDeepStrictEqual(known.get(name) ?? null, value))
}
