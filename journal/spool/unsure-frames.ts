interface Unsure {
  readonly number: number
  readonly frame: Buffer
  readonly records: number
}

/** Frames of which it is not known yet that they are on the disk, in the order in which they were added, by which they are numbered. */
export class UnsureFrames {
  #frames: Unsure[] = []

  /** Number of the oldest; undefined when there is none. */
  get first(): number | undefined {
    return this.#frames[0]?.number
  }

  get records(): number {
    return this.#frames.reduce((sum, { records }) => sum + records, 0)
  }

  bytes(): Buffer {
    return Buffer.concat(this.#frames.map(({ frame }) => frame))
  }

  add(frame: Unsure): void {
    this.#frames.push(frame)
  }

  /** All up to that one are on the disk, or wanted no more. */
  forget(upTo = Infinity): void {
    this.#frames = this.#frames.filter(({ number }) => number > upTo)
  }
}
