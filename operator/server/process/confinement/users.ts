import { createHash } from 'node:crypto'
import { lchown, lstat, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { MooringError, hasCode } from '../../../../shared/errors.ts'
import type { EngineUser } from '../spawn/engine-user.ts'
import { serverPaths } from '../files/paths.ts'

/** User ids that no distribution assigns (systemd, "Users, Groups, UIDs and GIDs on systemd Systems": above those of containers). */
const FULL_RANGE = { first: 1_900_000_000, count: 200_000_000 }
/** User ids in a container whose user namespace has 65,536: above those of people and services, below that of `nobody`. */
const CONTAINER_RANGE = { first: 20_000, count: 40_000 }

interface Range {
  readonly first: number
  readonly count: number
}

/** Range of ids that this process can assign to a child, from the text of /proc/self/uid_map (user_namespaces(7)). */
export function usableRange(map: string): Range | undefined {
  const mapped = map
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
  const holds = ({ first, count }: Range): boolean =>
    mapped.some(([inside = 0, , length = 0]) => inside <= first && first + count <= inside + length)
  return [FULL_RANGE, CONTAINER_RANGE].find(holds)
}

/** Id of a server: derived from the server's uid, so that it need not be stored, and different from the `taken` ids. */
export function idFor(server: string, { first, count }: Range, taken: ReadonlySet<number>): number {
  const start = createHash('sha256').update(server).digest().readUInt32BE() % count
  for (let step = 0; step < count; step++) {
    const id = first + ((start + step) % count)
    if (!taken.has(id)) return id
  }
  throw new MooringError('no_engine_user', `no user id is left for another database server`)
}

/**
 * Returns the user of one server, to which nothing of another server's processes is readable. A server with data keeps the user that owns
 * the data.
 * @throws MooringError `no_engine_user`
 */
export async function userOf(directory: string, server: string): Promise<EngineUser> {
  const range = usableRange(await readFile('/proc/self/uid_map', 'utf8'))
  if (!range)
    throw new MooringError('no_engine_user', 'this process has no user ids to give to database servers (user_namespaces(7))')
  const isInRange = (id: number): boolean => id >= range.first && id < range.first + range.count
  const own = await ownerOf(serverPaths(directory, server).data)
  if (own !== undefined && isInRange(own)) return { uid: own, gid: own }
  // The directory does not exist before the first server of an installation.
  const names = await readdir(directory).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return []
    throw error
  })
  const others = names.filter((name) => name !== server)
  const taken = await Promise.all(others.map((name) => ownerOf(serverPaths(directory, name).data)))
  const id = idFor(server, range, new Set(taken.filter((id) => id !== undefined)))
  return { uid: id, gid: id }
}

async function ownerOf(path: string): Promise<number | undefined> {
  try {
    return (await lstat(path)).uid
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ENOTDIR')) return undefined
    throw error
  }
}

/**
 * Gives a directory and all its contents to a user. No process of another user may have it open.
 * @throws MooringError `unsafe_directory` for a file with a second hard link: it may belong to another server
 */
export async function giveTo(path: string, { uid, gid }: EngineUser): Promise<void> {
  const found = await lstat(path)
  if (found.isFile() && found.nlink > 1)
    throw new MooringError('unsafe_directory', `${path} has more than one hard link, so no database server may own it`)
  if (found.isDirectory()) {
    for (const name of await readdir(path)) await giveTo(join(path, name), { uid, gid })
  }
  if (found.uid !== uid || found.gid !== gid) await lchown(path, uid, gid)
}
