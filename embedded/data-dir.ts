import { chmod, lstat, mkdir, readdir } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { MooringError } from '../shared/errors.ts'
import { makeDirectory } from './make-directory.ts'

/** The directory of all state, and the files in it that people use. Paths are absolute. */
export interface DataDir {
  readonly path: string
  /** PEM of the local CA. */
  readonly ca: string
  /** JWT of the platform admin. */
  readonly token: string
  /** To be sourced by a shell. */
  readonly env: string
  /** Host keys of the edge, for ssh. */
  readonly knownHosts: string
  /** Private key of the embedded issuer. */
  readonly issuer: string
}

/** Where things are, without looking. */
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
 * Makes the directory, for its owner alone (0700), or takes the one that is there. A wider mode is tightened.
 * @throws MooringError `data_dir_unusable` when it is no directory, is someone else's, or has content that others could have written
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
  // What others could write, they may have planted: state and keys from there cannot be trusted. Nothing can hide in an empty one.
  if ((stats.mode & 0o022) !== 0 && (await readdir(path)).length > 0) {
    throw unusable(path, `can be written by other users; look at what is in it, then chmod 700 it`)
  }
}

function ignoreExisting(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error
}

function unusable(path: string, why: string, cause?: unknown): MooringError {
  return new MooringError('data_dir_unusable', `the data directory ${path} ${why}`, { cause })
}
