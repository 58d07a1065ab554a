import type { Files } from './files.ts'
import { decodeFrame, type Frame, frameHead, HEADER_BYTES } from './frame.ts'

/**
 * Counts the bytes and records of the whole frames of a file, by their headers alone. A truncated frame at the end does not
 * count. Throws the system's error.
 */
export function measureSegment(files: Files, path: string): { readonly bytes: number; readonly records: number } {
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
export interface ReadSpan {
  readonly offset: number
  /** Bytes from `offset` to the end of the last whole frame. */
  readonly left: number
  readonly records: number
  readonly bytes: number
}

/** Frames that were read: `bytes` bytes from the offset on. */
export interface ReadFrames {
  readonly frames: readonly Frame[]
  readonly records: number
  readonly bytes: number
}

/**
 * Reads frames from an offset on, at least one, up to the bounds of `span`. Returns no frame where the file is damaged. Throws
 * the system's error.
 */
export function readSegment(files: Files, path: string, span: ReadSpan): ReadFrames {
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
