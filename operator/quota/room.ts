import type { Kind, Resource } from '../../crds/kind.ts'
import type { Cache } from '../../store/cache.ts'
import { aspectChangesOf, eventsOf, laterThan, type Source } from '../runtime/source.ts'
import type { Quota } from './quota.ts'

/** Delay in ms: objects deleted together are handled by one check of the waiting objects, which sorts all of them. */
const DELAY_MS = 50

/** Source of waiting objects that may be admitted since an object in their namespace was deleted, is being deleted, or was replaced. */
export function roomIn<K extends Kind>(cache: Cache<K>, quota: Pick<Quota<never>, 'next'>): Source {
  const namespaces = aspectChangesOf(cache, presenceOf, ({ namespace = '' }) => [{ name: namespace }])
  return eventsOf((enqueue) => laterThan(namespaces, DELAY_MS).subscribe(({ name }) => quota.next(name).forEach(enqueue)))
}

const presenceOf = ({ metadata: { uid, deletionTimestamp = '' } }: Resource<Kind>): string => `${uid} ${deletionTimestamp}`
