import {
  closeSync,
  fdatasync,
  fdatasyncSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { promisify } from 'node:util'

/** File operations of a spool. Each throws the system's error: any of them may fail at any time, temporarily or permanently. */
export interface Files {
  readonly list: (directory: string) => readonly string[]
  readonly size: (path: string) => number
  /** Creates a file and opens it for appending. Fails if it exists. */
  readonly create: (path: string) => number
  readonly openToRead: (path: string) => number
  /** Writes `bytes` from index `from` on. Returns the number of bytes written. */
  readonly append: (fd: number, bytes: Buffer, from: number) => number
  readonly truncate: (fd: number, length: number) => void
  /** Reads at most `length` bytes at `offset`; at least one unless the file ends there. */
  readonly read: (fd: number, offset: number, length: number) => Buffer
  readonly sync: (fd: number) => void
  /** Syncs the file without blocking this thread. */
  readonly syncAside: (fd: number) => Promise<void>
  readonly syncDirectory: (path: string) => void
  readonly close: (fd: number) => void
  /** Removes a file. Succeeds if it does not exist. */
  readonly remove: (path: string) => void
}

/** File operations on the disk. */
export const diskFiles: Files = {
  list: (directory) => readdirSync(directory),
  size: (path) => statSync(path).size,
  // Opened for appending: after a frame was truncated, the next one must not leave a hole.
  create: (path) => openSync(path, 'ax', 0o600),
  openToRead: (path) => openSync(path, 'r'),
  append: (fd, bytes, from) => writeSync(fd, bytes, from),
  truncate: ftruncateSync,
  read(fd, offset, length) {
    const bytes = Buffer.allocUnsafe(length)
    return bytes.subarray(0, readSync(fd, bytes, 0, length, offset))
  },
  sync: fdatasyncSync,
  syncAside: promisify(fdatasync),
  // A new file survives a power loss only when its directory is synced (fsync(2)).
  syncDirectory(path) {
    const fd = openSync(path, 'r')
    try {
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
  },
  close: closeSync,
  remove: (path) => rmSync(path, { force: true }),
}
