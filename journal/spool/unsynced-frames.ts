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
