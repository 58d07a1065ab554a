import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createEmbeddedStore, type EmbeddedStore, type EmbeddedStoreOptions } from '../../../store/embedded.ts'
import type { Kind } from '../../../crds/kind.ts'
import { StoreError, keyToString, type Key, type Store } from '../../../store/port.ts'

/** Directory of one test. */
export interface TemporaryDir extends AsyncDisposable {
  /** Path for the file of a store. */
  readonly path: string
}

/** Creates a directory for one test, removed with its content on disposal. */
export async function temporaryDir(): Promise<TemporaryDir> {
  const dir = await mkdtemp(join(tmpdir(), 'mooring-store-'))
  return { path: join(dir, 'state.db'), [Symbol.asyncDispose]: () => rm(dir, { recursive: true }) }
}

/** Embedded store of one test. */
export interface TemporaryStore extends AsyncDisposable {
  readonly store: EmbeddedStore
  readonly path: string
}

/** Opens an empty embedded store for a test; closed and removed on disposal. */
export async function openTemporaryStore(options: Omit<EmbeddedStoreOptions, 'path'> = {}): Promise<TemporaryStore> {
  const dir = await temporaryDir()
  const store = await createEmbeddedStore({ ...options, path: dir.path })
  return {
    store,
    path: dir.path,
    async [Symbol.asyncDispose]() {
      await store.close()
      await dir[Symbol.asyncDispose]()
    },
  }
}

/** Store whose writes conflict. */
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
