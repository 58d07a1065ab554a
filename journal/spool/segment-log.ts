import {
  closeSync,
  fdatasync,
  fdatasyncSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { decodeFrame, type Frame, frameHead, HEADER_BYTES } from './frame.ts'

/** A file is begun anew past this: what is dropped or removed goes by whole files. */
const SEGMENT_BYTES = 4 * 1024 * 1024
const sync = promisify(fdatasync)

interface Segment {
  readonly number: number
  bytes: number
  records: number
}

export interface SegmentLogOptions {
  readonly directory: string
  readonly name: string
  /** Whether `sync` is ever called: then a file is on the disk before the next is begun. */
  readonly durable: boolean
}

/** Where reading stands: behind what was taken for good. */
interface Place {
  number: number
  offset: number
}

/** What was read together, to be taken for good once it is kept elsewhere. */
export interface Batch {
  readonly frames: readonly Frame[]
  readonly records: number
  /** Records of a damaged rest of a file, which are passed over with it. */
  readonly lost: number
  readonly end: Readonly<Place>
}

/**
 * A queue of frames in files `{name}-{number}.log` of a directory: written at one end, taken at the other, file by file. What a process
 * that was killed wrote is found by the next, which writes no file on: a torn frame can only be the last one of a file.
 * Its calls are synchronous, for a thread of its own; they throw what the file system says.
 */
export class SegmentLog {
  readonly #directory: string
  readonly #name: string
  readonly #durable: boolean
  readonly #segments: Segment[]
  readonly #place: Place
  #fd: number | undefined
  #next: number
  #takenRecords = 0

  constructor({ directory, name, durable }: SegmentLogOptions) {
    this.#directory = directory
    this.#name = name
    this.#durable = durable
    const pattern = new RegExp(`^${name}-(\\d+)\\.log$`)
    const numbers = readdirSync(directory).flatMap((file) => pattern.exec(file)?.slice(1).map(Number) ?? [])
    this.#segments = numbers.toSorted((a, b) => a - b).map((number) => ({ number, ...this.#measure(number) }))
    this.#next = (this.#segments.at(-1)?.number ?? 0) + 1
    this.#place = { number: this.#segments[0]?.number ?? this.#next, offset: 0 }
  }

  /** Bytes on disk. */
  get bytes(): number {
    return this.#segments.reduce((sum, { bytes }) => sum + bytes, 0)
  }

  /** Records that were not taken yet. */
  get records(): number {
    return this.#segments.reduce((sum, { records }) => sum + records, 0) - this.#takenRecords
  }

  /** Adds whole frames, or nothing. */
  append(frame: Buffer, records: number): void {
    const { segment, fd } = this.#writable()
    try {
      for (let written = 0; written < frame.length;) written += writeSync(fd, frame, written)
    } catch (error) {
      // A torn frame must not come before a whole one.
      ftruncateSync(fd, segment.bytes)
      throw error
    }
    segment.bytes += frame.length
    segment.records += records
  }

  /** Resolves when all that was added before is on the disk. */
  async sync(): Promise<void> {
    if (this.#fd !== undefined) await sync(this.#fd)
  }

  /** The oldest frames that were not taken, at least one if there is any. */
  read(most: { readonly records: number; readonly bytes: number }): Batch | undefined {
    this.#forward()
    const segment = this.#segments.find(({ number }) => number === this.#place.number)
    if (!segment || this.#place.offset >= segment.bytes) return undefined
    const bytes = this.#bytesAt(segment, most.bytes)
    const frames: Frame[] = []
    let records = 0
    let offset = 0
    while (records < most.records) {
      const frame = decodeFrame(bytes.subarray(offset))
      if (!frame) break
      frames.push(frame)
      records += frame.records
      offset += HEADER_BYTES + frame.payload.length
    }
    const end = { number: segment.number, offset: this.#place.offset + offset }
    if (frames.length > 0) return { frames, records, lost: 0, end }
    return {
      frames,
      records: 0,
      lost: segment.records - this.#takenRecords,
      end: { number: segment.number, offset: segment.bytes },
    }
  }

  /** What was read is kept elsewhere. Files that were taken whole go. */
  take({ records, end }: Batch): void {
    if (end.number !== this.#place.number) return
    this.#place.offset = end.offset
    this.#takenRecords += records
    this.#forward()
  }

  /** Removes the oldest file. Returns how many records in it were not taken, undefined when there is none. */
  drop(): number | undefined {
    const oldest = this.#segments[0]
    if (!oldest) return undefined
    const lost = oldest.records - (this.#place.number === oldest.number ? this.#takenRecords : 0)
    this.#remove(oldest)
    return lost
  }

  /** Closes the file; one that was taken whole goes. */
  close(): void {
    this.#closeFile()
    this.#forward()
  }

  /** On to the first file that has something left. */
  #forward(): void {
    for (;;) {
      const first = this.#segments[0]
      if (!first) return
      if (this.#place.number < first.number) Object.assign(this.#place, { number: first.number, offset: 0 })
      const isTaken = this.#place.offset >= first.bytes
      const isWritten = this.#fd !== undefined && this.#segments.length === 1
      if (!isTaken || (isWritten && first.bytes < SEGMENT_BYTES / 4)) return
      this.#remove(first)
    }
  }

  #remove(segment: Segment): void {
    if (this.#segments.length === 1) this.#closeFile()
    unlinkSync(this.#path(segment.number))
    this.#segments.shift()
    if (this.#place.number === segment.number) {
      Object.assign(this.#place, { number: segment.number + 1, offset: 0 })
      this.#takenRecords = 0
    }
  }

  #writable(): { readonly segment: Segment; readonly fd: number } {
    const last = this.#segments.at(-1)
    if (last && this.#fd !== undefined && last.bytes < SEGMENT_BYTES) return { segment: last, fd: this.#fd }
    this.#closeFile()
    const segment = { number: this.#next, bytes: 0, records: 0 }
    // Appending: after a frame that was cut off again, the next one must not leave a hole.
    const fd = openSync(this.#path(segment.number), 'ax', 0o600)
    this.#fd = fd
    this.#next += 1
    this.#segments.push(segment)
    if (this.#durable) syncDirectory(this.#directory)
    return { segment, fd }
  }

  #closeFile(): void {
    if (this.#fd === undefined) return
    if (this.#durable) fdatasyncSync(this.#fd)
    closeSync(this.#fd)
    this.#fd = undefined
  }

  #path(number: number): string {
    return join(this.#directory, `${this.#name}-${number}.log`)
  }

  /** From the place on, some bytes, or at least the frame that begins there. */
  #bytesAt(segment: Segment, wanted: number): Buffer {
    const left = segment.bytes - this.#place.offset
    const fd = openSync(this.#path(segment.number), 'r')
    try {
      const head = frameHead(readAt(fd, this.#place.offset, HEADER_BYTES))
      return readAt(fd, this.#place.offset, Math.min(left, Math.max(wanted, head?.bytes ?? 0)))
    } finally {
      closeSync(fd)
    }
  }

  /** By the heads alone; what is torn at the end does not count. */
  #measure(number: number): { readonly bytes: number; readonly records: number } {
    const path = this.#path(number)
    const size = statSync(path).size
    const fd = openSync(path, 'r')
    let [offset, records] = [0, 0]
    try {
      for (;;) {
        const head = frameHead(readAt(fd, offset, HEADER_BYTES))
        if (!head || offset + head.bytes > size) return { bytes: offset, records }
        offset += head.bytes
        records += head.records
      }
    } finally {
      closeSync(fd)
    }
  }
}

function readAt(fd: number, offset: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length)
  return bytes.subarray(0, readSync(fd, bytes, 0, length, offset))
}

/** The name of a file survives the loss of power only with its directory (fsync(2)). */
function syncDirectory(directory: string): void {
  const fd = openSync(directory, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
