import { join } from 'node:path'
import { diskFiles, type Files } from './files.ts'
import type { Frame } from './frame.ts'
import { measureSegment, type Read, readSegment, type Wanted } from './read-segment.ts'
import { SegmentFile } from './segment-file.ts'

const SEGMENT_BYTES = 4 * 1024 * 1024

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
  readonly files?: Files
  /** A file is begun anew past this: what is dropped or removed goes by whole files. */
  readonly segmentBytes?: number
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

/** A frame of which it is not known yet that it is on the disk. */
interface Unsure {
  readonly number: number
  readonly frame: Buffer
  readonly records: number
}

/**
 * A queue of frames in files `{name}-{number}.log` of a directory: written at one end, taken at the other, file by file. What a process
 * that was killed wrote is found by the next, which writes no file on: a torn frame can only be the last one of a file.
 * Its calls are synchronous, for a thread of its own; they throw what the file system says, and may be made again.
 */
export class SegmentLog {
  readonly #directory: string
  readonly #name: string
  readonly #durable: boolean
  readonly #files: Files
  readonly #segmentBytes: number
  readonly #segments: Segment[]
  readonly #place: Place
  /** Taken whole, and still to be removed. */
  readonly #over: Segment[] = []
  /** The last of the segments, while it is written. */
  #file: SegmentFile | undefined
  #next: number
  #takenRecords = 0
  #appended = 0
  #unsure: Unsure[] = []
  /** Files of the one before, which may not have reached the disk. */
  #left: readonly number[]
  #syncing: Promise<void> = Promise.resolve()
  #nextSync: Promise<void> | undefined

  constructor(options: SegmentLogOptions) {
    const { directory, name, durable, files = diskFiles, segmentBytes = SEGMENT_BYTES } = options
    this.#directory = directory
    this.#name = name
    this.#durable = durable
    this.#files = files
    this.#segmentBytes = segmentBytes
    const pattern = new RegExp(`^${name}-(\\d+)\\.log$`)
    const numbers = files.list(directory).flatMap((file) => pattern.exec(file)?.slice(1).map(Number) ?? [])
    this.#segments = numbers.toSorted((a, b) => a - b).map((number) => ({ number, ...measureSegment(files, this.#path(number)) }))
    this.#left = durable ? numbers : []
    this.#next = (this.#segments.at(-1)?.number ?? 0) + 1
    this.#place = { number: this.#segments[0]?.number ?? this.#next, offset: 0 }
  }

  /** Bytes on disk. */
  get bytes(): number {
    return [...this.#segments, ...this.#over].reduce((sum, { bytes }) => sum + bytes, 0)
  }

  /** Records that were not taken yet. */
  get records(): number {
    return this.#segments.reduce((sum, { records }) => sum + records, 0) - this.#takenRecords
  }

  /** Whether `drop` would remove anything but the file that is written. */
  get hasOlder(): boolean {
    return this.#segments.length > (this.#file ? 1 : 0)
  }

  /** Adds whole frames, or nothing. */
  append(frame: Buffer, records: number): void {
    const { file, segment } = this.#writable()
    file.append(frame)
    segment.bytes += frame.length
    segment.records += records
    if (!this.#durable) return
    this.#appended += 1
    this.#unsure.push({ number: this.#appended, frame, records })
  }

  /**
   * Resolves when all that was added before is on the disk; calls that wait share one sync. After one that failed the next puts what may be
   * lost into a new file.
   */
  sync(): Promise<void> {
    this.#nextSync ??= this.#syncAfter(this.#syncing)
    return this.#nextSync
  }

  async #syncAfter(before: Promise<void>): Promise<void> {
    // Its failure is that of those who waited for it.
    await Promise.allSettled([before])
    this.#nextSync = undefined
    this.#syncing = this.#syncAll()
    await this.#syncing
  }

  async #syncAll(): Promise<void> {
    this.#syncLeft()
    if (this.#unsure.length === 0) return
    const { file } = this.#file?.sound === true ? { file: this.#file } : this.#writable()
    const upTo = this.#appended
    await file.sync()
    this.#unsure = this.#unsure.filter(({ number }) => number > upTo)
  }

  #syncLeft(): void {
    for (const { number } of this.#segments.filter(({ number }) => this.#left.includes(number))) {
      const fd = this.#files.openToRead(this.#path(number))
      try {
        this.#files.sync(fd)
      } finally {
        this.#files.close(fd)
      }
    }
    this.#left = []
  }

  /** The oldest frames that were not taken, at least one if there is any. */
  read(most: { readonly records: number; readonly bytes: number }): Batch | undefined {
    this.#forward()
    const segment = this.#segments.find(({ number }) => number === this.#place.number)
    if (!segment || this.#place.offset >= segment.bytes) return undefined
    const { number, bytes } = segment
    const { offset } = this.#place
    const read = this.#read(number, { ...most, offset, left: bytes - offset })
    if (read.frames.length > 0) return { ...read, lost: 0, end: { number, offset: offset + read.bytes } }
    return { frames: [], records: 0, lost: segment.records - this.#takenRecords, end: { number, offset: bytes } }
  }

  /** A file that somebody has removed by hand is damaged from its start. */
  #read(number: number, wanted: Wanted): Read {
    try {
      return readSegment(this.#files, this.#path(number), wanted)
    } catch (error) {
      if (this.#files.list(this.#directory).includes(this.#fileName(number))) throw error
      return { frames: [], records: 0, bytes: 0 }
    }
  }

  /** What was read is kept elsewhere, which holds whatever this throws. Files that were taken whole go. */
  take({ records, end }: Batch): void {
    if (end.number === this.#place.number) {
      this.#place.offset = end.offset
      this.#takenRecords += records
      this.#forward()
    }
    this.#removeOver()
  }

  /** Removes the oldest file. Returns how many records in it were not taken, undefined when there is none. */
  drop(): number | undefined {
    const oldest = this.#segments[0]
    if (!oldest) return undefined
    const lost = oldest.records - (this.#place.number === oldest.number ? this.#takenRecords : 0)
    this.#files.remove(this.#path(oldest.number))
    if (this.#segments.length === 1) this.#abandon()
    this.#shift(oldest)
    return lost
  }

  /** Closes the file; one that was taken whole goes. */
  close(): void {
    try {
      this.#retire()
    } finally {
      this.#forward()
      this.#removeOver()
    }
  }

  /** On to the first file that has something left. */
  #forward(): void {
    for (;;) {
      const first = this.#segments[0]
      if (!first) return
      if (this.#place.number < first.number) Object.assign(this.#place, { number: first.number, offset: 0 })
      const isTaken = this.#place.offset >= first.bytes
      const isWritten = this.#file !== undefined && this.#segments.length === 1
      if (!isTaken || (isWritten && first.bytes < this.#segmentBytes / 4)) return
      if (isWritten) this.#abandon()
      this.#shift(first)
      this.#over.push(first)
    }
  }

  #shift({ number }: Segment): void {
    this.#segments.shift()
    if (this.#place.number !== number) return
    Object.assign(this.#place, { number: number + 1, offset: 0 })
    this.#takenRecords = 0
  }

  #removeOver(): void {
    for (let [oldest] = this.#over; oldest; [oldest] = this.#over) {
      this.#files.remove(this.#path(oldest.number))
      this.#over.shift()
    }
  }

  #writable(): { readonly segment: Segment; readonly file: SegmentFile } {
    const segment = this.#segments.at(-1)
    if (segment && this.#file?.sound === true && segment.bytes < this.#segmentBytes) return { segment, file: this.#file }
    this.#retire()
    return this.#begin()
  }

  /** A new file, which begins with what may not have reached the disk. */
  #begin(): { readonly segment: Segment; readonly file: SegmentFile } {
    const number = this.#next
    const file = new SegmentFile(this.#path(number), this.#files)
    this.#next += 1
    try {
      if (this.#durable) this.#files.syncDirectory(this.#directory)
      file.append(Buffer.concat(this.#unsure.map(({ frame }) => frame)))
    } catch (error) {
      file.close()
      this.#over.push({ number, bytes: 0, records: 0 })
      throw error
    }
    const segment = { number, bytes: file.bytes, records: this.#unsure.reduce((sum, { records }) => sum + records, 0) }
    this.#file = file
    this.#segments.push(segment)
    return { segment, file }
  }

  /** Closes the file. What is not on the disk by then remains unsure. */
  #retire(): void {
    const file = this.#file
    this.#file = undefined
    if (!file) return
    try {
      if (!this.#durable || !file.sound) return
      file.syncNow()
      // An error is told but once: it may be the other sync that hears of it.
      if (!file.syncing) this.#unsure = []
    } finally {
      file.close()
    }
  }

  /** Closes the file, of which nothing is wanted any more. */
  #abandon(): void {
    const file = this.#file
    this.#file = undefined
    this.#unsure = []
    file?.close()
  }

  #fileName(number: number): string {
    return `${this.#name}-${number}.log`
  }

  #path(number: number): string {
    return join(this.#directory, this.#fileName(number))
  }
}
