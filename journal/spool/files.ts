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

/** What a spool asks of its disk. Each throws what the system says: any of it may fail, at any time, for a while or for good. */
export interface Files {
  readonly list: (directory: string) => readonly string[]
  readonly size: (path: string) => number
  /** A file that is not there yet, to be appended to. */
  readonly create: (path: string) => number
  readonly openToRead: (path: string) => number
  /** Writes from byte `from` of `bytes` on. Returns how many were written. */
  readonly append: (fd: number, bytes: Buffer, from: number) => number
  readonly truncate: (fd: number, length: number) => void
  /** At most `length` bytes at `offset`, at least one unless the file ends there. */
  readonly read: (fd: number, offset: number, length: number) => Buffer
  readonly sync: (fd: number) => void
  /** The same, without holding up this thread. */
  readonly syncAside: (fd: number) => Promise<void>
  readonly syncDirectory: (path: string) => void
  readonly close: (fd: number) => void
  /** A file that is not there is removed. */
  readonly remove: (path: string) => void
}

/** Of the disk itself. */
export const diskFiles: Files = {
  list: (directory) => readdirSync(directory),
  size: (path) => statSync(path).size,
  // Appending: after a frame that was cut off again, the next one must not leave a hole.
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
  // The name of a file survives the loss of power only with its directory (fsync(2)).
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
