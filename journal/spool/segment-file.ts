import type { Files } from './files.ts'

/**
 * One file of a log while it is appended to. Its calls throw what the file system says.
 *
 * After a sync that failed the system may have given up what it could not write, and calls the next sync a success (fsync(2)): such a file,
 * and one with a torn frame that could not be cut off, is not `sound`, and is written on no more.
 */
export class SegmentFile {
  readonly #files: Files
  readonly #fd: number
  #bytes = 0
  #torn = false
  #failure: { readonly cause: unknown } | undefined
  #syncs = 0
  #closed = false

  /** Makes the file. */
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

  /** Whether a sync is under way. */
  get syncing(): boolean {
    return this.#syncs > 0
  }

  /** Adds all of it, or nothing. */
  append(bytes: Buffer): void {
    try {
      for (let written = 0; written < bytes.length;) written += this.#files.append(this.#fd, bytes, written)
    } catch (error) {
      this.#cutOff()
      throw error
    }
    this.#bytes += bytes.length
  }

  /** Resolves when all that was added before is on the disk. */
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

  /** The same, while this thread waits. */
  syncNow(): void {
    try {
      this.#files.sync(this.#fd)
    } catch (error) {
      this.#failure ??= { cause: error }
    }
    if (this.#failure) throw this.#failure.cause
  }

  /** Once. Under a sync that is under way the file stays open: its number may be another file's at once. */
  close(): void {
    this.#closed = true
    if (this.#syncs === 0) this.#files.close(this.#fd)
  }

  /** A torn frame must not come before a whole one. */
  #cutOff(): void {
    try {
      this.#files.truncate(this.#fd, this.#bytes)
    } catch {
      this.#torn = true
    }
  }
}
