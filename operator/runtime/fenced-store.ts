import { StoreCode, StoreError } from '../../store/errors.ts'
import type { Store } from '../../store/port.ts'

/**
 * The same store, whose writes are refused with `unavailable` unless `leads()` holds at the moment of each: a process that was held up
 * (paused, swapped out) past its lease wakes up as leader in all but fact, and must not write before it notices.
 */
export function createFencedStore(store: Store, leads: () => boolean): Store {
  /** @throws StoreError `unavailable` */
  async function fenced<T>(write: () => Promise<T>): Promise<T> {
    if (!leads()) throw new StoreError(StoreCode.unavailable, 'this process does not lead: it may not write')
    return write()
  }
  return {
    get: (kind, key) => store.get(kind, key),
    list: (kind, options) => store.list(kind, options),
    watch: (kind, options) => store.watch(kind, options),
    create: (kind, draft) => fenced(() => store.create(kind, draft)),
    replace: (kind, object) => fenced(() => store.replace(kind, object)),
    mergePatch: (kind, key, patch, preconditions) => fenced(() => store.mergePatch(kind, key, patch, preconditions)),
    patchStatus: (kind, key, status, preconditions) => fenced(() => store.patchStatus(kind, key, status, preconditions)),
    delete: (kind, key, preconditions) => fenced(() => store.delete(kind, key, preconditions)),
  }
}
