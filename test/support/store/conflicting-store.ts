import type { Kind } from '../../../crds/kind.ts'
import { StoreError } from '../../../store/errors.ts'
import { keyToString } from '../../../store/key-string.ts'
import type { Key, Store } from '../../../store/port.ts'

export interface ConflictingStore {
  readonly store: Store
  /** Writes that failed with a conflict: `patchStatus SharedInstance acme--prod/a`. */
  readonly conflicts: ReadonlySet<string>
}

/** Wraps a store so that each first, third, fifth … identical write to an object fails with a conflict. */
export function createConflictingStore(store: Store): ConflictingStore {
  const conflicts = new Set<string>()
  const due = new Set<string>()

  function meetAnother(verb: string, kind: Kind, key: Key): void {
    const write = `${verb} ${kind.kind} ${keyToString(key)}`
    if (due.delete(write)) return
    due.add(write)
    conflicts.add(write)
    throw new StoreError('conflict', `${key.name} has changed: read it again`)
  }

  return {
    conflicts,
    store: {
      get: (...args) => store.get(...args),
      list: (...args) => store.list(...args),
      watch: (...args) => store.watch(...args),
      async create(kind, draft) {
        meetAnother('create', kind, (draft as { metadata: Key }).metadata)
        return store.create(kind, draft)
      },
      async replace(kind, object) {
        meetAnother('replace', kind, object.metadata)
        return store.replace(kind, object)
      },
      async mergePatch(kind, key, ...rest) {
        meetAnother('mergePatch', kind, key)
        return store.mergePatch(kind, key, ...rest)
      },
      async patchStatus(kind, key, ...rest) {
        meetAnother('patchStatus', kind, key)
        return store.patchStatus(kind, key, ...rest)
      },
      async delete(kind, key, ...rest) {
        meetAnother('delete', kind, key)
        return store.delete(kind, key, ...rest)
      },
    },
  }
}
