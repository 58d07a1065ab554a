import { diskFiles, type Files } from './files.ts'
import type { Frame } from './frame.ts'
import { SegmentDirectory } from './segment-directory.ts'
import type { SegmentFile } from './segment-file.ts'
import { UnsureFrames } from './unsure-frames.ts'

const SEGMENT_BYTES = 4 * 1024 * 1024

interface Segment {
  readonly number: number
  /** Its first frame, counted from the first one that was added; 0 in a file of the one before. */
  readonly first: number
  bytes: number
  records: number
}

interface Writable {
  readonly segment: Segment
  readonly file: SegmentFile
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

/**
 * A queue of frames in files `{name}-{number}.log` of a directory: written at one end, taken at the other, file by file. What a process
 * that was killed wrote is found by the next, which writes no file on: a torn frame can only be the last one of a file.
 * Its calls are synchronous, for a thread of its own; they throw what the file system says, and may be made again.
 */
export class SegmentLog {
  readonly #directory: SegmentDirectory
  readonly #durable: boolean
  readonly #segmentBytes: number
  readonly #segments: Segment[]
  readonly #place: Place
  /** Not wanted any more, and still to be removed. */
  readonly #over: Segment[] = []
  /** The last of the segments, while it is written. */
  #file: SegmentFile | undefined
  #next: number
  #takenRecords = 0
  #appended = 0
  /** All of it is in the last of the segments. */
  readonly #unsure = new UnsureFrames()
  /** Which a sync is under way of, unless it was removed since. */
  #inSync: Segment | undefined
  /** Files of the one before, which may not have reached the disk. */
  #left: readonly number[]
  #syncing: Promise<void> = Promise.resolve()
  #nextSync: Promise<void> | undefined

  constructor(options: SegmentLogOptions) {
    const { directory, name, durable, files = diskFiles, segmentBytes = SEGMENT_BYTES } = options
    this.#directory = new SegmentDirectory(directory, name, files)
    this.#durable = durable
    this.#segmentBytes = segmentBytes
    const numbers = this.#directory.numbers()
    this.#segments = numbers.map((number) => ({ number, first: 0, ...this.#directory.measure(number) }))
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

  /** Whether `drop` would remove anything but the file that is written, or that has what was not synced. */
  get hasOlder(): boolean {
    return this.#over.length > 0 || this.#segments.length > (this.#file || this.#unsure.first !== undefined ? 1 : 0)
  }

  /** Adds whole frames, or nothing. */
  append(frame: Buffer, records: number): void {
    const { file, segment } = this.#writable(this.#segmentBytes)
    file.append(frame)
    segment.bytes += frame.length
    segment.records += records
    this.#appended += 1
    if (this.#durable) this.#unsure.add({ number: this.#appended, frame, records })
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
    const wanted = this.#appended
    while ((this.#unsure.first ?? Infinity) <= wanted) {
      const { segment, file } = this.#writable(Infinity)
      const upTo = this.#appended
      this.#inSync = segment
      await file.sync()
      if (this.#inSync === segment) this.#unsure.forget(upTo)
    }
  }

  #syncLeft(): void {
    for (const { number } of this.#segments.filter(({ number }) => this.#left.includes(number))) this.#directory.sync(number)
    this.#left = []
  }

  /** The oldest frames that were not taken, at least one if there is any. */
  read(most: { readonly records: number; readonly bytes: number }): Batch | undefined {
    this.#forward()
    const segment = this.#segments.find(({ number }) => number === this.#place.number)
    if (!segment || this.#place.offset >= segment.bytes) return undefined
    const { number, bytes } = segment
    const { offset } = this.#place
    const read = this.#directory.read(number, { ...most, offset, left: bytes - offset })
    if (read.frames.length > 0) return { ...read, lost: 0, end: { number, offset: offset + read.bytes } }
    return { frames: [], records: 0, lost: segment.records - this.#takenRecords, end: { number, offset: bytes } }
  }

  /** What was read is kept elsewhere, which holds whatever this throws. Files that were taken whole go. */
  take({ records, lost, end }: Batch): void {
    if (end.number === this.#place.number) {
      this.#place.offset = end.offset
      this.#takenRecords += records + lost
      this.#forward()
    }
    this.#removeOver()
  }

  /**
   * Removes the oldest file. Returns how many records in it were not taken, undefined when there is none, or only one that has what was not
   * synced: for that somebody waits.
   */
  drop(): number | undefined {
    if (this.#over.length > 0) {
      this.#removeOver()
      return 0
    }
    const oldest = this.#segments[0]
    if (!oldest || (this.#segments.length === 1 && this.#unsure.first !== undefined)) return undefined
    const lost = oldest.records - (this.#place.number === oldest.number ? this.#takenRecords : 0)
    this.#directory.remove(oldest.number)
    if (this.#segments.length === 1) this.#abandon()
    this.#leave(oldest)
    if (this.#inSync === oldest) this.#inSync = undefined
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
      this.#leave(first)
      this.#over.push(first)
    }
  }

  #leave(segment: Segment): void {
    const { number } = segment
    this.#segments.splice(this.#segments.indexOf(segment), 1)
    if (this.#place.number !== number) return
    Object.assign(this.#place, { number: number + 1, offset: 0 })
    this.#takenRecords = 0
  }

  #removeOver(): void {
    for (let [oldest] = this.#over; oldest; [oldest] = this.#over) {
      this.#directory.remove(oldest.number)
      this.#over.shift()
    }
  }

  /** The last file, if it may be written on and is smaller than `most`, or else a new one. */
  #writable(most: number): Writable {
    const segment = this.#segments.at(-1)
    if (segment && this.#file?.sound === true && segment.bytes < most) return { segment, file: this.#file }
    this.#retire()
    return this.#begin()
  }

  /** A new file, which begins with what may not have reached the disk. */
  #begin(): Writable {
    // Else a disk that neither syncs nor removes would be filled with copies.
    if (this.#unsure.first !== undefined) this.#removeOver()
    const number = this.#next
    const file = this.#directory.create(number)
    this.#next += 1
    const { first = this.#appended + 1, records } = this.#unsure
    const copy = this.#unsure.bytes()
    const segment = { number, first, bytes: copy.length, records }
    try {
      if (this.#durable) this.#directory.syncNames()
      file.append(copy)
    } catch (error) {
      file.close()
      this.#over.push(segment)
      this.#tryRemoveOver()
      throw error
    }
    this.#file = file
    this.#supersede(segment)
    this.#segments.push(segment)
    return { segment, file }
  }

  /** Removes files of which all is in a new one, or each sync that fails would leave another. */
  #supersede({ first }: Segment): void {
    for (const segment of this.#segments.filter((each) => each.first >= first)) {
      this.#leave(segment)
      this.#over.push(segment)
      if (this.#inSync === segment) this.#inSync = undefined
    }
    this.#tryRemoveOver()
  }

  /** While something else is to be told or done: what stays is told when it is tried again. */
  #tryRemoveOver(): void {
    try {
      this.#removeOver()
    } catch {
      // It is in #over still.
    }
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
      if (!file.syncing) this.#unsure.forget()
    } finally {
      file.close()
    }
  }

  /** Closes the file, of which nothing is wanted any more. */
  #abandon(): void {
    const file = this.#file
    this.#file = undefined
    this.#unsure.forget()
    file?.close()
  }
}
