import { join } from 'node:path'
import type { Files } from './files.ts'
import { measureSegment, type Read, readSegment, type Wanted } from './read-segment.ts'
import { SegmentFile } from './segment-file.ts'

/** The files `{name}-{number}.log` of a directory. Its calls throw what the file system says. */
export class SegmentDirectory {
  readonly #directory: string
  readonly #name: string
  readonly #files: Files

  constructor(directory: string, name: string, files: Files) {
    this.#directory = directory
    this.#name = name
    this.#files = files
  }

  /** Of all that are there, the oldest first. */
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

  /** Brings the names of files that were made to the disk. */
  syncNames(): void {
    this.#files.syncDirectory(this.#directory)
  }

  /** A file that somebody has removed by hand is damaged from its start. */
  read(number: number, wanted: Wanted): Read {
    return this.#unlessGone(number, { frames: [], records: 0, bytes: 0 }, () =>
      readSegment(this.#files, this.#path(number), wanted),
    )
  }

  /** Of a file that nobody writes. One that somebody has removed by hand needs none. */
  sync(number: number): void {
    this.#unlessGone(number, undefined, () => {
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

  #unlessGone<T>(number: number, gone: T, act: () => T): T {
    try {
      return act()
    } catch (error) {
      if (this.numbers().includes(number)) throw error
      return gone
    }
  }

  #path(number: number): string {
    return join(this.#directory, `${this.#name}-${number}.log`)
  }
}
