import { jsonOf } from '../../../shared/json.ts'
import { AgentState, STATE_KEY } from '../../agent-state.ts'
import { type Catalog, createCatalog } from './catalog.ts'
import { corruptKey, manifestKey } from './keys.ts'
import { readManifest } from './manifest.ts'
import { corrupt, type ReadDeps, readText } from './read-object.ts'
import type { Quiet } from './restorable.ts'

/** Lists the repository into a new catalog. */
export async function loadCatalog(deps: ReadDeps): Promise<Catalog> {
  const catalog = createCatalog()
  await relist(deps, catalog)
  return catalog
}

/** Updates a catalog from a listing. Objects may be added to both meanwhile. */
export async function relist(deps: ReadDeps, catalog: Catalog): Promise<void> {
  const { repository, prefix, signal } = deps
  const root = `${prefix}/`
  const missing = new Set(catalog.keys())
  for await (const entry of repository.list(root, signal)) {
    const key = entry.key.slice(root.length)
    missing.delete(key)
    catalog.add({ key, sizeBytes: entry.sizeBytes })
  }
  for (const key of missing) catalog.remove(key)
  await learnManifests(deps, catalog)
}

/** Reads the manifests that the catalog does not know. A damaged one gets a note, so that its backup no longer counts. */
async function learnManifests(deps: ReadDeps, catalog: Catalog): Promise<void> {
  for (const id of catalog.unknownManifests()) {
    const key = manifestKey(id)
    const text = await readText(deps, key)
    if (text === undefined) {
      catalog.remove(key)
      continue
    }
    const manifest = readManifest(text)
    if (manifest?.id === id) catalog.learn(manifest)
    else {
      await corrupt(deps, key, 'is damaged')
      catalog.add({ key: corruptKey(key), sizeBytes: 0 })
    }
  }
}

/** Reads the last state that an agent wrote; undefined when there is none that can be read. */
export async function loadState(deps: ReadDeps): Promise<AgentState | undefined> {
  const text = await readText(deps, STATE_KEY)
  return text === undefined ? undefined : AgentState.safeParse(jsonOf(text)).data
}

/** Returns the quiet time after the last mark, from a state. */
export function quietOf(state: Pick<AgentState, 'archivedAt' | 'markedAt'> | undefined): Quiet | undefined {
  const { archivedAt, markedAt } = state ?? { archivedAt: null, markedAt: null }
  if (archivedAt === null || markedAt === null) return undefined
  return { markedAt: Date.parse(markedAt), until: Date.parse(archivedAt) }
}
