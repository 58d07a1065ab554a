import type { Kind, Resource } from '../../crds/kind.ts'
import type { Cache } from '../../store/cache.ts'
import type { Verdict } from '../../store/conditions.ts'
import type { Key } from '../../store/port.ts'
import type { Findings, Report } from '../reporter.ts'
import type { Outcome } from '../runtime/controller.ts'

export interface CatalogDeps<K extends Kind> {
  readonly cache: Cache<K>
  readonly report: Report
  /** What the object comes to now. */
  readonly judge: (object: Resource<K>) => Verdict
  /** What its status says beside. */
  readonly findings?: (object: Resource<K>) => Findings<K>
  /** Milliseconds until that may be another without any change; undefined for never. */
  readonly againInMs?: (object: Resource<K>) => number | undefined
}

/** Says of each object of a kind that is only data whether it can be used. */
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
