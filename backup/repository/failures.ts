import { codeOf, hasCode, MooringError } from '../../shared/errors.ts'
import { RepositoryCode } from './port.ts'

type Explain = (name: string) => string

/** Messages for system errors that an administrator can correct. */
const REASONS: Readonly<Record<string, Explain>> = {
  ENOENT: (name) => `The directory ${name} does not exist. Create it, or mount the volume that has it.`,
  ENOTDIR: (name) =>
    `A part of ${name} is a file or a symbolic link where a directory is expected. Remove it; links are not followed.`,
  ELOOP: (name) => `A file in ${name} is a symbolic link, which is not followed. Remove it.`,
  EISDIR: (name) => `A directory in ${name} has the name of a backup's file. Remove it.`,
  EACCES: (name) => `No permission in ${name}. Make the user of this process its owner, with mode 0700.`,
  EPERM: (name) =>
    `The system forbids the operation in ${name}. Make the user of this process its owner, and check mount options and file attributes.`,
  EROFS: (name) => `${name} is mounted read-only. Check the disk, and mount it for writing.`,
  EIO: (name) =>
    `The disk or server of ${name} reports an input/output error. Check it, and use another directory when it does not recover.`,
  ESTALE: (name) => `The network file system of ${name} was exported anew. Mount it again.`,
  ENOTCONN: (name) => `The network file system of ${name} is not connected. Mount it again.`,
}

const FULL: Readonly<Record<string, Explain>> = {
  ENOSPC: (name) => NO_SPACE(name),
  EDQUOT: (name) => `The disk quota in ${name} is reached. Raise it, or keep fewer days of backups.`,
}

export const unavailable = (message: string, cause?: unknown): MooringError =>
  new MooringError(RepositoryCode.unavailable, message, { cause })

export const full = (message: string, cause?: unknown): MooringError => new MooringError(RepositoryCode.full, message, { cause })

const NO_SPACE: Explain = (name) =>
  `No space is left in ${name}. Make space or enlarge the volume, or keep fewer days of backups.`

/** Returns the error of a directory whose remaining free space is reserved. */
export const noSpace = (name: string): MooringError => full(NO_SPACE(name))

export const notFound = (name: string, key: string): MooringError =>
  new MooringError(RepositoryCode.notFound, `There is no object ${key} in ${name}.`)

/** Returns the repository's error for a system error in the directory `name`; a MooringError is returned as it is. */
export function fileFailure(error: unknown, name: string): Error {
  if (error instanceof MooringError) return error
  const code = codeOf(error) ?? ''
  const explainFull = FULL[code]
  if (explainFull) return full(explainFull(name), error)
  const explain = REASONS[code]
  return unavailable(
    explain ? explain(name) : `An operation in ${name} failed (${code || 'unknown reason'}). Check the disk or server.`,
    error,
  )
}

/** Returns the result of the operation, or undefined when it fails with one of the system's codes. */
export async function unlessCode<T>(codes: readonly string[], operation: Promise<T>): Promise<T | undefined> {
  try {
    return await operation
  } catch (error) {
    if (codes.some((code) => hasCode(error, code))) return undefined
    throw error
  }
}
