import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createEmbeddedStore } from '../../../store/embedded.ts'
import type { Store } from '../../../store/port.ts'

/** Copy of the state in a data directory, for reading while its owner, running or dead, keeps the lock. */
export interface StateCopy extends AsyncDisposable {
  readonly store: Store
}

export async function openStateOf(dataDir: string): Promise<StateCopy> {
  await using opened = new AsyncDisposableStack()
  const copy = await mkdtemp(join(tmpdir(), 'mooring-state-'))
  opened.defer(() => rm(copy, { recursive: true }))
  for (const name of ['state.db', 'state.db-wal']) await copyFile(join(dataDir, name), join(copy, name))
  const store = opened.use(await createEmbeddedStore({ path: join(copy, 'state.db') }))
  const ownership = opened.move()
  return { store, [Symbol.asyncDispose]: () => ownership.disposeAsync() }
}
