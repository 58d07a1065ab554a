import type { Kind, Resource } from '../../crds/kind.ts'
import type { Cache } from '../../store/cache.ts'
import type { Verdict } from '../../store/conditions.ts'
import type { Key } from '../../store/port.ts'
import type { Findings, Report } from '../reporter.ts'
import type { Outcome } from '../runtime/controller.ts'

export interface CatalogDeps<K extends Kind> {
  readonly cache: Cache<K>
  readonly report: Report
  /** Decides the object's Ready condition. */
  readonly judge: (object: Resource<K>) => Verdict
  /** Other fields of its status. */
  readonly findings?: (object: Resource<K>) => Findings<K>
  /** Milliseconds until the condition may change without a change of the object; undefined for never. */
  readonly againInMs?: (object: Resource<K>) => number | undefined
}

/** Creates the reconciler of a kind that is only data: it reports whether an object can be used. */
export function createCatalogReconciler<K extends Kind>(deps: CatalogDeps<K>): (key: Key) => Promise<Outcome> {
  const { cache, report, judge, findings, againInMs = () => undefined } = deps
  return async function reconcileCatalog(key) {
    const object = cache.get(key)
    if (!object || object.metadata.deletionTimestamp !== undefined) return { verdict: 'settled', reason: 'Gone' }
    const verdict = judge(object)
    await report(cache.kind, object, verdict, findings?.(object))
    return { verdict: 'settled', reason: verdict.reason, requeueAfterMs: againInMs(object) }
  }
}
