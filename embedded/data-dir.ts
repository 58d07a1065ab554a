import { chmod, lstat, mkdir, readdir, readFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { MooringError } from '../shared/errors.ts'
import { makeDirectory, writeFileAtomic } from './files.ts'
import { type IssuerKey, IssuerKeyFile } from '../apiserver/auth/issuer.ts'

/** Directory of all state, and the files in it for users. Paths are absolute. */
export interface DataDir {
  readonly path: string
  /** PEM file of the local CA. */
  readonly ca: string
  /** File with the JWT of the platform admin. */
  readonly token: string
  /** File with variables, for a shell to source. */
  readonly env: string
  /** Host keys of the edge, in the format of ssh's known_hosts. */
  readonly knownHosts: string
  /** Private key of the embedded issuer. */
  readonly issuer: string
}

/** Returns the paths, without access to the disk. */
export function dataDirAt(path: string): DataDir {
  const absolute = resolve(path)
  const file = (name: string): string => join(absolute, name)
  return {
    path: absolute,
    ca: file('ca.pem'),
    token: file('token'),
    env: file('env'),
    issuer: file('issuer.json'),
    knownHosts: file('known_hosts'),
  }
}

/**
 * Creates the directory for its owner alone (0700), or opens an existing one and tightens its mode.
 * @throws MooringError `data_dir_unusable` when it is not a directory, belongs to another user, or has content that other users
 * could have written
 */
export async function openDataDir(path: string): Promise<DataDir> {
  const dir = dataDirAt(path)
  try {
    await makeDirectory(dirname(dir.path))
    await mkdir(dir.path, { mode: 0o700 }).catch(ignoreExisting)
    await checkOwner(dir.path)
    await chmod(dir.path, 0o700)
  } catch (cause) {
    if (cause instanceof MooringError) throw cause
    throw unusable(dir.path, `cannot be used: ${cause instanceof Error ? cause.message : String(cause)}`, cause)
  }
  return dir
}

async function checkOwner(path: string): Promise<void> {
  const stats = await lstat(path)
  if (!stats.isDirectory()) throw unusable(path, 'is not a directory')
  const uid = process.getuid?.()
  if (stats.uid !== uid) throw unusable(path, `belongs to user ${stats.uid}, and this process is user ${uid ?? 'unknown'}`)
  // Other users may have planted state or keys in a directory that they can write. An empty one is safe.
  if ((stats.mode & 0o022) !== 0 && (await readdir(path)).length > 0) {
    throw unusable(path, `can be written by other users; check its content, then run chmod 700 on it`)
  }
}

function ignoreExisting(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error
}

function unusable(path: string, why: string, cause?: unknown): MooringError {
  return new MooringError('data_dir_unusable', `the data directory ${path} ${why}`, { cause })
}

/**
 * Reads `issuer.json`. Needs no lock, so that a token can be signed while Mooring runs.
 * @returns undefined when Mooring has never been started on this directory
 * @throws MooringError `issuer_unreadable`
 */
export async function readIssuer(dir: DataDir): Promise<IssuerKey | undefined> {
  try {
    return IssuerKeyFile.parse(JSON.parse(await readFile(dir.issuer, 'utf8')))
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return undefined
    // The cause is dropped: it may quote the file, which has a private key.
    throw new MooringError('issuer_unreadable', `${dir.issuer} is not a valid issuer key`)
  }
}

/** Writes `issuer.json`, readable by its owner alone. */
export async function writeIssuer(dir: DataDir, content: IssuerKey): Promise<void> {
  await writeFileAtomic(dir.issuer, `${JSON.stringify(content, undefined, 2)}\n`, 0o600)
}
