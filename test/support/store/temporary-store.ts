import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createEmbeddedStore, type EmbeddedStore, type EmbeddedStoreOptions } from '../../../store/embedded.ts'

export interface TemporaryDir extends AsyncDisposable {
  /** Path for the file of a store. */
  readonly path: string
}

/** Creates a directory for one test, removed with its content on disposal. */
export async function temporaryDir(): Promise<TemporaryDir> {
  const dir = await mkdtemp(join(tmpdir(), 'mooring-store-'))
  return { path: join(dir, 'state.db'), [Symbol.asyncDispose]: () => rm(dir, { recursive: true }) }
}

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
