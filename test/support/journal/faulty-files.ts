import { diskFiles, type Files } from '../../../journal/spool/files.ts'

/** Disk whose calls fail with the code given in `failing`, as long as they are listed there. */
export interface FaultyFiles extends Files {
  readonly failing: Map<keyof Files, string>
  /** Number of bytes that can be appended before the disk is full, possibly in the middle of a frame. */
  room: number
}

export function faultyFiles(): FaultyFiles {
  const failing = new Map<keyof Files, string>()
  function check(call: keyof Files): void {
    const code = failing.get(call)
    if (code !== undefined) throw systemError(call, code)
  }
  /** Wraps a call so that it fails while it is listed. */
  const checked =
    <A extends readonly unknown[], R>(call: keyof Files, act: (...given: A) => R) =>
    (...given: A): R => {
      check(call)
      return act(...given)
    }
  const { list, size, create, openToRead, truncate, read, sync, syncDirectory, close, remove } = diskFiles
  const faulty: FaultyFiles = {
    failing,
    room: Infinity,
    list: checked('list', list),
    size: checked('size', size),
    create: checked('create', create),
    openToRead: checked('openToRead', openToRead),
    append(fd, bytes, from) {
      check('append')
      const length = Math.min(bytes.length - from, faulty.room)
      if (length === 0 && from < bytes.length) throw systemError('append', 'ENOSPC')
      faulty.room -= length
      return diskFiles.append(fd, bytes.subarray(from, from + length), 0)
    },
    truncate: checked('truncate', truncate),
    read: checked('read', read),
    sync: checked('sync', sync),
    async syncAside(fd) {
      await diskFiles.syncAside(fd)
      check('syncAside')
    },
    syncDirectory: checked('syncDirectory', syncDirectory),
    close: checked('close', close),
    remove: checked('remove', remove),
  }
  return faulty
}

const systemError = (syscall: string, code: string): Error =>
  Object.assign(new Error(`${code}: the disk of a test, ${syscall}`), { code, syscall })
