import type { Entry } from '../../repository/port.ts'
import { backupOf, corruptOf, manifestKey, parseQuietKey, parseWalKey } from './keys.ts'
import type { Manifest } from './manifest.ts'
import type { Archived, Quiet } from './restorable.ts'
import { createRuns, type Runs } from './runs.ts'

/** Objects of one database in the repository, as a listing shows them. Keys are those below its prefix. */
export interface Catalog {
  add(entry: Entry): void
  remove(key: string): void
  keys(): readonly string[]
  /** Adds the content of a manifest that the catalog has. */
  learn(manifest: Manifest): void
  /** Ids of backups whose manifests are in the repository, but were not learnt yet. */
  unknownManifests(): readonly string[]
  manifests(): readonly Manifest[]
  /** Size in bytes of all objects of a backup. */
  sizeOf(backupId: string): number
  /** Segments of WAL. */
  walObjects(): readonly Entry[]
  corruptKeys(): readonly string[]
  /** Returns the objects that count for the restorable window. */
  archived(): Archived
  storedBytes(): number
}

export function createCatalog(): Catalog {
  const sizes = new Map<string, number>()
  const known = new Map<string, Manifest>()
  const backups = new Map<string, Set<string>>()
  const corrupt = new Set<string>()
  const quiet = new Map<string, Quiet>()
  let storedBytes = 0
  /** Undefined after a removal, which is rare: computed anew when it is needed. */
  let runs: Runs | undefined = createRuns()

  function remove(key: string): void {
    const size = sizes.get(key)
    if (size === undefined) return
    sizes.delete(key)
    storedBytes -= size
    const id = backupOf(key)
    if (id !== undefined) removeFrom(backups, id, key)
    if (id !== undefined && key === manifestKey(id)) known.delete(id)
    const bad = corruptOf(key)
    if (bad !== undefined) corrupt.delete(bad)
    quiet.delete(key)
    if (bad !== undefined || isWal(key)) runs = undefined
  }

  const counts = (key: string): boolean => sizes.has(key) && !corrupt.has(key)
  const isComplete = ({ id, parts }: Manifest): boolean =>
    counts(manifestKey(id)) && parts.every(({ key, sizeBytes }) => counts(key) && sizes.get(key) === sizeBytes)

  return {
    add({ key, sizeBytes }) {
      if (sizes.get(key) === sizeBytes) return
      remove(key)
      sizes.set(key, sizeBytes)
      storedBytes += sizeBytes
      const id = backupOf(key)
      if (id !== undefined) backups.set(id, (backups.get(id) ?? new Set()).add(key))
      const bad = corruptOf(key)
      if (bad !== undefined) corrupt.add(bad)
      const noted = parseQuietKey(key)
      if (noted) quiet.set(key, noted)
      if (bad !== undefined) runs = undefined
      else if (runs && !corrupt.has(key)) addTo(runs, key)
    },
    remove,
    keys: () => [...sizes.keys()],
    learn: (manifest) => void known.set(manifest.id, manifest),
    unknownManifests: () => [...backups.keys()].filter((id) => counts(manifestKey(id)) && !known.has(id)),
    manifests: () => [...known.values()],
    sizeOf: (id) => [...(backups.get(id) ?? [])].reduce((sum, key) => sum + (sizes.get(key) ?? 0), 0),
    walObjects: () => [...sizes].filter(([key]) => isWal(key)).map(([key, sizeBytes]) => ({ key, sizeBytes })),
    corruptKeys: () => [...corrupt],
    archived() {
      runs ??= runsOf([...sizes.keys()].filter(counts))
      return { bases: [...known.values()].filter(isComplete), wal: runs.all(), quiet: [...quiet.values()] }
    },
    storedBytes: () => storedBytes,
  }
}

function removeFrom(sets: Map<string, Set<string>>, name: string, value: string): void {
  const set = sets.get(name)
  set?.delete(value)
  if (set?.size === 0) sets.delete(name)
}

const isWal = (key: string): boolean => key.startsWith('wal/')

function runsOf(keys: readonly string[]): Runs {
  const runs = createRuns()
  for (const key of keys) addTo(runs, key)
  return runs
}

function addTo(runs: Runs, key: string): void {
  const wal = parseWalKey(key)
  if (wal) runs.add(wal.log, wal.segment.number, wal.markedAt)
}
