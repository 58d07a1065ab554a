import type { Kind, Resource } from '../../crds/kind.ts'
import type { Cache } from '../../store/cache.ts'
import { aspectChangesOf, eventsOf, laterThan, type Source } from '../runtime/source.ts'
import type { Quota } from './quota.ts'

/** Some that go together make room by one look at those that wait: of thousands, each look sorts them all. */
const LOOK_AFTER_MS = 50

/** Keys of objects that waited for room in their namespace and may have it: one there has gone, is going, or has a successor. */
export function roomIn<K extends Kind>(cache: Cache<K>, quota: Pick<Quota<never>, 'next'>): Source {
  const namespaces = aspectChangesOf(cache, presenceOf, ({ namespace = '' }) => [{ name: namespace }])
  return eventsOf((enqueue) => laterThan(namespaces, LOOK_AFTER_MS).subscribe(({ name }) => quota.next(name).forEach(enqueue)))
}

const presenceOf = ({ metadata: { uid, deletionTimestamp = '' } }: Resource<Kind>): string => `${uid} ${deletionTimestamp}`
