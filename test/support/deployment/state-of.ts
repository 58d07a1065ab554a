import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createEmbeddedStore } from '../../../store/embedded.ts'
import type { Store } from '../../../store/port.ts'

/** All resources of a data directory as they are on disk, in a copy: its owner, dead or alive, has them to itself. */
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
