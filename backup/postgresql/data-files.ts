import { constants, type FileHandle, open, readdir } from 'node:fs/promises'
import { codeOf, MooringError } from '../../shared/errors.ts'

/** Directories whose content a backup leaves out (PostgreSQL, "Making a Base Backup Using the Low Level API"). */
const EMPTY = new Set([
  'pg_dynshmem',
  'pg_notify',
  'pg_replslot',
  'pg_serial',
  'pg_snapshots',
  'pg_stat_tmp',
  'pg_subtrans',
  'pg_wal',
])
const LEFT_OUT = new Set([
  'backup_label',
  'backup_manifest',
  'postmaster.opts',
  'postmaster.pid',
  'recovery.signal',
  'standby.signal',
  'tablespace_map',
])

/** Prefix of the names of Mooring's own files and directories in a data directory. */
export const OWN_PREFIX = 'mooring_'

/** File that is copied last: its recovery position must cover the state of all other files. */
export const CONTROL_FILE = 'global/pg_control'

const TEMPORARY = /^(?:pgsql_tmp|pg_internal\.init)/
/** File of a session's temporary relation (PostgreSQL, "Database File Layout"). */
const TEMPORARY_RELATION = /^t\d+_\d+(?:_\w+)?(?:\.\d+)?$/
const RELATION = /^(\d+)(_fsm|_vm|_init)?(?:\.\d+)?$/

/** Whether a backup includes an entry of the data directory. `siblings` are the names in the same directory. */
export function isBackedUp(path: string, siblings: ReadonlySet<string>): boolean {
  const parts = path.split('/')
  const name = parts.at(-1) ?? ''
  if (parts.length === 1) return isBackedUpAtTop(name)
  if (EMPTY.has(parts[0] ?? '')) return false
  if (TEMPORARY.test(name) || TEMPORARY_RELATION.test(name)) return false
  const [, relation, fork] = RELATION.exec(name) ?? []
  // Recovery recreates an unlogged relation from its init fork.
  return relation === undefined || fork === '_init' || !siblings.has(`${relation}_init`)
}

function isBackedUpAtTop(name: string): boolean {
  return !LEFT_OUT.has(name) && !name.startsWith(OWN_PREFIX) && !name.endsWith('.tmp')
}

export type DataEntry =
  | { readonly kind: 'directory'; readonly path: string }
  /** The consumer does not close the handle. */
  | { readonly kind: 'file'; readonly path: string; readonly handle: FileHandle; readonly sizeBytes: number }

/**
 * Yields the entries of a data directory that a backup includes, {@link CONTROL_FILE} last. No link is followed: the server's user owns the directory, and
 * this process may be permitted to read more than that user. Files that are removed meanwhile are left out.
 * @param excluded relative path of a directory to leave out
 */
export async function* dataFiles(directory: string, excluded?: string): AsyncIterable<DataEntry> {
  await using root = await openDirectory(directory)
  for await (const entry of walk(root, '', excluded)) {
    if (entry.path !== CONTROL_FILE) yield entry
  }
  await using global = await openDirectory(`${descriptorPath(root)}/global`)
  const control = await openEntry(global, CONTROL_FILE)
  if (control) yield* closing(control)
}

/** Maximum depth of directories; PostgreSQL uses four. Each open level takes a descriptor of this process. */
const MAX_DEPTH = 16

async function* walk(directory: FileHandle, prefix: string, excluded: string | undefined): AsyncIterable<DataEntry> {
  if (prefix.split('/').length > MAX_DEPTH)
    throw new MooringError('backup_failed', `the data directory has more than ${MAX_DEPTH} levels of directories`)
  const names = await readdir(descriptorPath(directory))
  const siblings = new Set(names)
  for (const name of names) {
    const path = `${prefix}${name}`
    if (path === CONTROL_FILE || path === excluded || !isBackedUp(path, siblings)) continue
    const entry = await openEntry(directory, path)
    if (!entry) continue
    if (entry.kind === 'file') {
      yield* closing(entry)
      continue
    }
    await using below = entry.handle
    yield { kind: 'directory', path }
    yield* walk(below, `${path}/`, excluded)
  }
}

interface Opened {
  readonly kind: 'file' | 'directory'
  readonly path: string
  readonly handle: FileHandle
  readonly sizeBytes: number
}

async function* closing(file: Opened): AsyncIterable<DataEntry> {
  await using handle = file.handle
  yield { kind: 'file', path: file.path, handle, sizeBytes: file.sizeBytes }
}

/** Error codes for an entry that was removed, or that is a link or a socket. */
const SKIPPED = new Set(['ENOENT', 'ELOOP', 'ENXIO'])

/** Opens the last part of `path` in `directory`; undefined for an entry that is neither a directory nor a file with one name. */
async function openEntry(directory: FileHandle, path: string): Promise<Opened | undefined> {
  const name = path.slice(path.lastIndexOf('/') + 1)
  let handle: FileHandle
  try {
    handle = await open(`${descriptorPath(directory)}/${name}`, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    if (SKIPPED.has(codeOf(error) ?? '')) return undefined
    throw error
  }
  const found = await handle.stat()
  // A second link could be to a file that the server's user cannot read. PostgreSQL makes none outside of pg_wal.
  if (found.isFile() && found.nlink === 1) return { kind: 'file', path, handle, sizeBytes: found.size }
  if (found.isDirectory()) return { kind: 'directory', path, handle, sizeBytes: 0 }
  await handle.close()
  return undefined
}

/** Opens a directory. Fails for a symbolic link. */
export function openDirectory(path: string): Promise<FileHandle> {
  return open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
}

/** Returns the path of an open directory: no other program can replace that directory by a link in between (proc(5), "/proc/pid/fd"). */
export const descriptorPath = (handle: FileHandle): string => `/proc/self/fd/${handle.fd}`
