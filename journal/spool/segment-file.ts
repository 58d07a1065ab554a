import type { Files } from './files.ts'

/**
 * File of a log while it is written. Each method throws the system's error.
 *
 * After a failed sync the system may have discarded what it could not write, and the next sync succeeds all the same (fsync(2)).
 * Such a file is not `sound`, and is not written any more. The same holds for a file with a truncated frame that could not be
 * removed.
 */
export class SegmentFile {
  readonly #files: Files
  readonly #fd: number
  #bytes = 0
  #torn = false
  #failure: { readonly cause: unknown } | undefined
  #syncs = 0
  #closed = false

  /** Creates the file. */
  constructor(path: string, files: Files) {
    this.#files = files
    this.#fd = files.create(path)
  }

  get bytes(): number {
    return this.#bytes
  }

  get sound(): boolean {
    return !this.#torn && this.#failure === undefined
  }

  /** Whether a sync is running. */
  get syncing(): boolean {
    return this.#syncs > 0
  }

  /** Appends all bytes or nothing. */
  append(bytes: Buffer): void {
    try {
      for (let written = 0; written < bytes.length;) written += this.#files.append(this.#fd, bytes, written)
    } catch (error) {
      this.#cutOff()
      throw error
    }
    this.#bytes += bytes.length
  }

  /** Resolves when all bytes appended before are on disk. */
  async sync(): Promise<void> {
    this.#syncs += 1
    try {
      await this.#files.syncAside(this.#fd)
    } catch (error) {
      this.#failure ??= { cause: error }
    }
    this.#syncs -= 1
    if (this.#closed && this.#syncs === 0) this.#files.close(this.#fd)
    if (this.#failure) throw this.#failure.cause
  }

  /** Syncs the file, and blocks this thread. */
  syncNow(): void {
    try {
      this.#files.sync(this.#fd)
    } catch (error) {
      this.#failure ??= { cause: error }
    }
    if (this.#failure) throw this.#failure.cause
  }

  /**
   * Closes the file; call it once. The descriptor stays open during a running sync, because another file could get its number.
   */
  close(): void {
    this.#closed = true
    if (this.#syncs === 0) this.#files.close(this.#fd)
  }

  /** Removes a truncated frame: a whole frame must not follow it. */
  #cutOff(): void {
    try {
      this.#files.truncate(this.#fd, this.#bytes)
    } catch {
      this.#torn = true
    }
  }
}

interface NumberedFrame {
  readonly number: number
  readonly frame: Buffer
  readonly records: number
}

/** Frames that may not have reached the disk yet, numbered in the order in which they were appended. */
export class UnsyncedFrames {
  #frames: NumberedFrame[] = []

  /** Number of the oldest frame; undefined when there is none. */
  get first(): number | undefined {
    return this.#frames[0]?.number
  }

  get records(): number {
    return this.#frames.reduce((sum, { records }) => sum + records, 0)
  }

  bytes(): Buffer {
    return Buffer.concat(this.#frames.map(({ frame }) => frame))
  }

  add(frame: NumberedFrame): void {
    this.#frames.push(frame)
  }

  /** Removes the frames up to number `upTo`, which are on disk or not needed any more. */
  forget(upTo = Infinity): void {
    this.#frames = this.#frames.filter(({ number }) => number > upTo)
  }
}
