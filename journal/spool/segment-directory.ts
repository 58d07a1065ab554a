import { join } from 'node:path'
import type { Files } from './files.ts'
import { measureSegment, type ReadFrames, readSegment, type ReadSpan } from './read-segment.ts'
import { SegmentFile } from './segment-file.ts'

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
