import { join } from 'node:path'
import type { Files } from './files.ts'
import { SegmentFile } from './segment-file.ts'
import { decodeFrame, type Frame, frameHead, HEADER_BYTES } from './frame.ts'

/** Files `{name}-{number}.log` of a directory. Each method throws the system's error. */
export class SegmentDirectory {
  readonly #directory: string
  readonly #name: string
  readonly #files: Files

  constructor(directory: string, name: string, files: Files) {
    this.#directory = directory
    this.#name = name
    this.#files = files
  }

  /** Returns the numbers of the existing files, oldest first. */
  numbers(): readonly number[] {
    const pattern = new RegExp(`^${this.#name}-(\\d+)\\.log$`)
    const numbers = this.#files.list(this.#directory).flatMap((file) => pattern.exec(file)?.slice(1).map(Number) ?? [])
    return numbers.toSorted((a, b) => a - b)
  }

  measure(number: number): { readonly bytes: number; readonly records: number } {
    return measureSegment(this.#files, this.#path(number))
  }

  create(number: number): SegmentFile {
    return new SegmentFile(this.#path(number), this.#files)
  }

  /** Syncs the directory, so that new files survive a power loss. */
  syncNames(): void {
    this.#files.syncDirectory(this.#directory)
  }

  /** Reads frames of a file. A file that was removed by hand counts as damaged from its start. */
  read(number: number, span: ReadSpan): ReadFrames {
    return this.#unlessRemoved(number, { frames: [], records: 0, bytes: 0 }, () =>
      readSegment(this.#files, this.#path(number), span),
    )
  }

  /** Syncs a file that is not written any more. A file that was removed by hand needs no sync. */
  sync(number: number): void {
    this.#unlessRemoved(number, undefined, () => {
      const fd = this.#files.openToRead(this.#path(number))
      try {
        this.#files.sync(fd)
      } finally {
        this.#files.close(fd)
      }
    })
  }

  remove(number: number): void {
    this.#files.remove(this.#path(number))
  }

  #unlessRemoved<T>(number: number, fallback: T, act: () => T): T {
    try {
      return act()
    } catch (error) {
      if (this.numbers().includes(number)) throw error
      return fallback
    }
  }

  #path(number: number): string {
    return join(this.#directory, `${this.#name}-${number}.log`)
  }
}

/**
 * Counts the bytes and records of the whole frames of a file, by their headers alone. A truncated frame at the end does not
 * count. Throws the system's error.
 */
function measureSegment(files: Files, path: string): { readonly bytes: number; readonly records: number } {
  const size = files.size(path)
  return withFile(files, path, (fd) => {
    let [bytes, records] = [0, 0]
    for (;;) {
      const head = frameHead(readWhole(files, fd, { offset: bytes, length: HEADER_BYTES }))
      if (!head || bytes + head.bytes > size) return { bytes, records }
      bytes += head.bytes
      records += head.records
    }
  })
}

/** Part of a file to read, with upper bounds of records and bytes. */
interface ReadSpan {
  readonly offset: number
  /** Bytes from `offset` to the end of the last whole frame. */
  readonly left: number
  readonly records: number
  readonly bytes: number
}

/** Frames that were read: `bytes` bytes from the offset on. */
interface ReadFrames {
  readonly frames: readonly Frame[]
  readonly records: number
  readonly bytes: number
}

/**
 * Reads frames from an offset on, at least one, up to the bounds of `span`. Returns no frame where the file is damaged. Throws
 * the system's error.
 */
function readSegment(files: Files, path: string, span: ReadSpan): ReadFrames {
  const { offset, left } = span
  const raw = withFile(files, path, (fd) => {
    const head = frameHead(readWhole(files, fd, { offset, length: HEADER_BYTES }))
    return readWhole(files, fd, { offset, length: Math.min(left, Math.max(span.bytes, head?.bytes ?? 0)) })
  })
  const frames: Frame[] = []
  let [bytes, records] = [0, 0]
  while (records < span.records) {
    const frame = decodeFrame(raw.subarray(bytes))
    if (!frame) break
    frames.push(frame)
    records += frame.records
    bytes += HEADER_BYTES + frame.payload.length
  }
  return { frames, records, bytes }
}

/**
 * Reads until `length` bytes or the end of the file. A read may return fewer bytes than requested (read(2)), and an incomplete
 * frame would count as damaged.
 */
function readWhole(files: Files, fd: number, { offset, length }: { readonly offset: number; readonly length: number }): Buffer {
  const parts: Buffer[] = []
  let bytes = 0
  while (bytes < length) {
    const part = files.read(fd, offset + bytes, length - bytes)
    if (part.length === 0) break
    parts.push(part)
    bytes += part.length
  }
  const [first] = parts
  return first && parts.length === 1 ? first : Buffer.concat(parts)
}

function withFile<T>(files: Files, path: string, read: (fd: number) => T): T {
  const fd = files.openToRead(path)
  try {
    return read(fd)
  } finally {
    files.close(fd)
  }
}
