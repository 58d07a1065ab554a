import type { Files } from './files.ts'
import { decodeFrame, type Frame, frameHead, HEADER_BYTES } from './frame.ts'

/** Bytes and records of the whole frames of a file, by their heads alone: what is torn at its end does not count. Throws what the file system says. */
export function measureSegment(files: Files, path: string): { readonly bytes: number; readonly records: number } {
  const size = files.size(path)
  return reading(files, path, (fd) => {
    let [bytes, records] = [0, 0]
    for (;;) {
      const head = frameHead(readWhole(files, fd, { offset: bytes, length: HEADER_BYTES }))
      if (!head || bytes + head.bytes > size) return { bytes, records }
      bytes += head.bytes
      records += head.records
    }
  })
}

export interface Wanted {
  readonly offset: number
  /** Bytes from `offset` to the end of the file's whole frames. */
  readonly left: number
  readonly records: number
  readonly bytes: number
}

/** What was read, up to `bytes` behind the offset. */
export interface Read {
  readonly frames: readonly Frame[]
  readonly records: number
  readonly bytes: number
}

/** Frames from an offset on: as many as are wanted, at least one; none where the file is damaged. Throws what the file system says. */
export function readSegment(files: Files, path: string, wanted: Wanted): Read {
  const { offset, left } = wanted
  const raw = reading(files, path, (fd) => {
    const head = frameHead(readWhole(files, fd, { offset, length: HEADER_BYTES }))
    return readWhole(files, fd, { offset, length: Math.min(left, Math.max(wanted.bytes, head?.bytes ?? 0)) })
  })
  const frames: Frame[] = []
  let [bytes, records] = [0, 0]
  while (records < wanted.records) {
    const frame = decodeFrame(raw.subarray(bytes))
    if (!frame) break
    frames.push(frame)
    records += frame.records
    bytes += HEADER_BYTES + frame.payload.length
  }
  return { frames, records, bytes }
}

/** Up to the end of the file: a read may yield less than there is (read(2)), and a frame that was not read whole would count as damaged. */
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

function reading<T>(files: Files, path: string, read: (fd: number) => T): T {
  const fd = files.openToRead(path)
  try {
    return read(fd)
  } finally {
    files.close(fd)
  }
}
