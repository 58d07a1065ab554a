import type { Kind, Resource } from '../../crds/kind.ts'
import type { Cache } from '../../store/cache.ts'
import type { Decision } from '../../store/conditions.ts'
import type { Key } from '../../store/port.ts'
import type { StatusFields, Report } from '../reporter.ts'
import type { Outcome } from '../runtime/controller.ts'

export interface CatalogDeps<K extends Kind> {
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
