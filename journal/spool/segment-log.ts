import { diskFiles, type Files } from './files.ts'
import type { Frame } from './frame.ts'
import { SegmentDirectory } from './segment-directory.ts'
import { type SegmentFile, UnsyncedFrames } from './segment-file.ts'

const SEGMENT_BYTES = 4 * 1024 * 1024

interface Segment {
  readonly number: number
  /** Number of its first frame, counted over the frames appended by this process; 0 for a file of an earlier process. */
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
  /** Whether the log supports `sync`: then a file is synced before the next one begins. */
  readonly durable: boolean
  readonly files?: Files
  /** Size in bytes past which a new file begins. Dropping and removing work on whole files. */
  readonly segmentBytes?: number
}

/** Position of the first frame that is not taken. */
interface Position {
  number: number
  offset: number
}

/** Frames that were read together. `take` removes them from the log. */
export interface Batch {
  readonly frames: readonly Frame[]
  readonly records: number
  /** Number of records in the damaged rest of a file, which `take` skips. */
  readonly lost: number
  readonly end: Readonly<Position>
}

/**
 * Queue of frames in files `{name}-{number}.log` of a directory, appended at one end and taken at the other, file by file. A new
 * process finds the frames of a killed one and begins a new file, so that a truncated frame can only be the last of a file.
 * Methods are synchronous, for a thread of their own; they throw the system's error, and may be called again after it.
 */
export class SegmentLog {
  readonly #directory: SegmentDirectory
  readonly #durable: boolean
  readonly #segmentBytes: number
  readonly #segments: Segment[]
  readonly #position: Position
  /** Segments that are taken or superseded, and whose files still exist. */
  readonly #removable: Segment[] = []
  /** File of the last segment while it is written. */
  #file: SegmentFile | undefined
  #next: number
  #takenRecords = 0
  #appended = 0
  /** Frames that may not have reached the disk. All are in the last segment. */
  readonly #unsynced = new UnsyncedFrames()
  /** Segment of the running sync, unless it was removed since. */
  #inSync: Segment | undefined
  /** Numbers of files of an earlier process, which may not have reached the disk. */
  #inherited: readonly number[]
  #syncing: Promise<void> = Promise.resolve()
  #nextSync: Promise<void> | undefined

  constructor(options: SegmentLogOptions) {
    const { directory, name, durable, files = diskFiles, segmentBytes = SEGMENT_BYTES } = options
    this.#directory = new SegmentDirectory(directory, name, files)
    this.#durable = durable
    this.#segmentBytes = segmentBytes
    const numbers = this.#directory.numbers()
    this.#segments = numbers.map((number) => ({ number, first: 0, ...this.#directory.measure(number) }))
    this.#inherited = durable ? numbers : []
    this.#next = (this.#segments.at(-1)?.number ?? 0) + 1
    this.#position = { number: this.#segments[0]?.number ?? this.#next, offset: 0 }
  }

  /** Bytes on disk. */
  get bytes(): number {
    return [...this.#segments, ...this.#removable].reduce((sum, { bytes }) => sum + bytes, 0)
  }

  /** Number of records that are not taken yet. */
  get records(): number {
    return this.#segments.reduce((sum, { records }) => sum + records, 0) - this.#takenRecords
  }

  /** Whether `drop` can remove a file that is neither being written nor has unsynced frames. */
  get hasOlder(): boolean {
    return this.#removable.length > 0 || this.#segments.length > (this.#file || this.#unsynced.first !== undefined ? 1 : 0)
  }

  /** Appends a frame of `records` records, or nothing. */
  append(frame: Buffer, records: number): void {
    const { file, segment } = this.#writable(this.#segmentBytes)
    file.append(frame)
    segment.bytes += frame.length
    segment.records += records
    this.#appended += 1
    if (this.#durable) this.#unsynced.add({ number: this.#appended, frame, records })
  }

  /**
   * Resolves when all frames appended before are on disk. Waiting calls share one sync. After a failed sync the next one copies
   * the frames that may be lost into a new file.
   */
  sync(): Promise<void> {
    this.#nextSync ??= this.#syncAfter(this.#syncing)
    return this.#nextSync
  }

  async #syncAfter(before: Promise<void>): Promise<void> {
    // Its callers handle its failure.
    await Promise.allSettled([before])
    this.#nextSync = undefined
    this.#syncing = this.#syncAll()
    await this.#syncing
  }

  async #syncAll(): Promise<void> {
    this.#syncInherited()
    const wanted = this.#appended
    while ((this.#unsynced.first ?? Infinity) <= wanted) {
      const { segment, file } = this.#writable(Infinity)
      const upTo = this.#appended
      this.#inSync = segment
      await file.sync()
      if (this.#inSync === segment) this.#unsynced.forget(upTo)
    }
  }

  #syncInherited(): void {
    for (const { number } of this.#segments.filter(({ number }) => this.#inherited.includes(number))) this.#directory.sync(number)
    this.#inherited = []
  }

  /** Returns the oldest frames that are not taken, at least one; undefined when there is none. */
  read(most: { readonly records: number; readonly bytes: number }): Batch | undefined {
    this.#advance()
    const segment = this.#segments.find(({ number }) => number === this.#position.number)
    if (!segment || this.#position.offset >= segment.bytes) return undefined
    const { number, bytes } = segment
    const { offset } = this.#position
    const read = this.#directory.read(number, { ...most, offset, left: bytes - offset })
    if (read.frames.length > 0) return { ...read, lost: 0, end: { number, offset: offset + read.bytes } }
    return { frames: [], records: 0, lost: segment.records - this.#takenRecords, end: { number, offset: bytes } }
  }

  /** Takes a batch out of the log, which holds even when this throws. Files that are taken as a whole are removed. */
  take({ records, lost, end }: Batch): void {
    if (end.number === this.#position.number) {
      this.#position.offset = end.offset
      this.#takenRecords += records + lost
      this.#advance()
    }
    this.#removeFiles()
  }

  /**
   * Removes the oldest file. Returns the number of its records that were not taken. Returns undefined when there is no file, or
   * only one with unsynced frames, whose callers wait for a sync.
   */
  drop(): number | undefined {
    if (this.#removable.length > 0) {
      this.#removeFiles()
      return 0
    }
    const oldest = this.#segments[0]
    if (!oldest || (this.#segments.length === 1 && this.#unsynced.first !== undefined)) return undefined
    const lost = oldest.records - (this.#position.number === oldest.number ? this.#takenRecords : 0)
    this.#directory.remove(oldest.number)
    if (this.#segments.length === 1) this.#abandon()
    this.#detach(oldest)
    if (this.#inSync === oldest) this.#inSync = undefined
    return lost
  }

  /** Closes the log. A file that is taken as a whole is removed. */
  close(): void {
    try {
      this.#retire()
    } finally {
      this.#advance()
      this.#removeFiles()
    }
  }

  /** Advances the position to the first file with frames that are not taken. */
  #advance(): void {
    for (;;) {
      const first = this.#segments[0]
      if (!first) return
      if (this.#position.number < first.number) Object.assign(this.#position, { number: first.number, offset: 0 })
      const isTaken = this.#position.offset >= first.bytes
      const isWritten = this.#file !== undefined && this.#segments.length === 1
      if (!isTaken || (isWritten && first.bytes < this.#segmentBytes / 4)) return
      if (isWritten) this.#abandon()
      this.#detach(first)
      this.#removable.push(first)
    }
  }

  #detach(segment: Segment): void {
    const { number } = segment
    this.#segments.splice(this.#segments.indexOf(segment), 1)
    if (this.#position.number !== number) return
    Object.assign(this.#position, { number: number + 1, offset: 0 })
    this.#takenRecords = 0
  }

  #removeFiles(): void {
    for (let [oldest] = this.#removable; oldest; [oldest] = this.#removable) {
      this.#directory.remove(oldest.number)
      this.#removable.shift()
    }
  }

  /** Returns the last file if it is sound and smaller than `most` bytes, else a new one. */
  #writable(most: number): Writable {
    const segment = this.#segments.at(-1)
    if (segment && this.#file?.sound === true && segment.bytes < most) return { segment, file: this.#file }
    this.#retire()
    return this.#begin()
  }

  /** Begins a new file with a copy of the frames that may not have reached the disk. */
  #begin(): Writable {
    // Otherwise a disk that fails to sync and to remove would fill up with copies.
    if (this.#unsynced.first !== undefined) this.#removeFiles()
    const number = this.#next
    const file = this.#directory.create(number)
    this.#next += 1
    const { first = this.#appended + 1, records } = this.#unsynced
    const copy = this.#unsynced.bytes()
    const segment = { number, first, bytes: copy.length, records }
    try {
      if (this.#durable) this.#directory.syncNames()
      file.append(copy)
    } catch (error) {
      file.close()
      this.#removable.push(segment)
      this.#tryRemoveFiles()
      throw error
    }
    this.#file = file
    this.#supersede(segment)
    this.#segments.push(segment)
    return { segment, file }
  }

  /** Removes the files whose frames are all copied into a new one; otherwise each failed sync would leave a file. */
  #supersede({ first }: Segment): void {
    for (const segment of this.#segments.filter((each) => each.first >= first)) {
      this.#detach(segment)
      this.#removable.push(segment)
      if (this.#inSync === segment) this.#inSync = undefined
    }
    this.#tryRemoveFiles()
  }

  /** Removes files, and ignores errors: another result takes precedence, and the next removal reports them. */
  #tryRemoveFiles(): void {
    try {
      this.#removeFiles()
    } catch {
      // The segments remain in #removable.
    }
  }

  /** Closes the file. Frames that are not on disk by then remain unsynced. */
  #retire(): void {
    const file = this.#file
    this.#file = undefined
    if (!file) return
    try {
      if (!this.#durable || !file.sound) return
      file.syncNow()
      // The system reports a write error once: a concurrent sync may have received it.
      if (!file.syncing) this.#unsynced.forget()
    } finally {
      file.close()
    }
  }

  /** Closes the file, whose frames are not needed any more. */
  #abandon(): void {
    const file = this.#file
    this.#file = undefined
    this.#unsynced.forget()
    file?.close()
  }
}
