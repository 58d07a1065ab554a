import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { diskFiles, type Files } from '../../../journal/spool/files.ts'
import { encodeFrame } from '../../../journal/spool/frame.ts'
import { SegmentLog } from '../../../journal/spool/segment-log.ts'

/** Maximum size of a batch that {@link drain} takes. */
export const MOST = { records: 5, bytes: 200 }

/** Creates a directory for a test of logs, removed on disposal. */
export function scratch(): Disposable & { readonly directory: string } {
  const directory = mkdtempSync(join(tmpdir(), 'mooring-segments-'))
  return { directory, [Symbol.dispose]: () => rmSync(directory, { recursive: true }) }
}
/** Opens the log of a directory without durability. */
export const open = (directory: string, files: Files = diskFiles) =>
  new SegmentLog({ directory, name: 'x', durable: false, files })
/** Opens the log of a directory, which is durable. */
export const openDurable = (directory: string, files: Files = diskFiles) =>
  new SegmentLog({ directory, name: 'x', durable: true, files })
/** Encodes a frame with this payload. */
export const frameOf = (text: string, records = 1) => encodeFrame({ kind: 'audit', records, payload: Buffer.from(text) })

/** Takes all frames of a log. */
export function drain(log: SegmentLog): readonly string[] {
  const texts: string[] = []
  for (let batch = log.read(MOST); batch; batch = log.read(MOST)) {
    texts.push(...batch.frames.map(({ payload }) => payload.toString()))
    log.take(batch)
  }
  return texts
}

/** Disk whose calls fail with the code given in `failing`, as long as they are listed there. */
export interface FaultyFiles extends Files {
  readonly failing: Map<keyof Files, string>
  /** Number of bytes that can be appended before the disk is full, possibly in the middle of a frame. */
  room: number
}

/** Wraps the files of this machine. */
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
