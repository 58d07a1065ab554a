import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createEmbeddedStore, type EmbeddedStore, type EmbeddedStoreOptions } from '../../../store/embedded.ts'

export interface TemporaryDir extends AsyncDisposable {
  /** Where a store's file may be made. */
  readonly path: string
}

/** A directory for one test, removed with all that is in it. */
export async function temporaryDir(): Promise<TemporaryDir> {
  const dir = await mkdtemp(join(tmpdir(), 'mooring-store-'))
  return { path: join(dir, 'state.db'), [Symbol.asyncDispose]: () => rm(dir, { recursive: true }) }
}

export interface TemporaryStore extends AsyncDisposable {
  readonly store: EmbeddedStore
  readonly path: string
}

/** An empty embedded store for tests; closed and removed on disposal. */
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
