/** Data types of SSH messages and keys (RFC 4251, section 5). */

const LENGTH_BYTES = 4

/** Reads one value after the other; returns `undefined` when the data end too early, and from then on. */
export class WireReader {
  readonly #data: Buffer
  #at = 0

  constructor(data: Buffer) {
    this.#data = data
  }

  get left(): number {
    return this.#data.length - this.#at
  }

  uint32(): number | undefined {
    if (this.left < LENGTH_BYTES) return this.#none
    const value = this.#data.readUInt32BE(this.#at)
    this.#at += LENGTH_BYTES
    return value
  }

  bytes(count: number): Buffer | undefined {
    if (this.left < count) return this.#none
    const value = this.#data.subarray(this.#at, this.#at + count)
    this.#at += count
    return value
  }

  string(): Buffer | undefined {
    const length = this.uint32()
    return length === undefined ? undefined : this.bytes(length)
  }

  text(): string | undefined {
    return this.string()?.toString('utf8')
  }

  names(): readonly string[] | undefined {
    return this.string()?.toString('latin1').split(',')
  }

  /** Reads a non-negative number as its bytes without leading zeros; keys contain no negative ones. */
  unsigned(): Buffer | undefined {
    const value = this.string()
    if (value === undefined || ((value[0] ?? 0) & 0x80) !== 0) return this.#none
    const start = value.findIndex((byte) => byte !== 0)
    return start === -1 ? Buffer.alloc(0) : value.subarray(start)
  }

  get #none(): undefined {
    this.#at = this.#data.length
    return undefined
  }
}

export function uint32(value: number): Buffer {
  const buffer = Buffer.allocUnsafe(LENGTH_BYTES)
  buffer.writeUInt32BE(value)
  return buffer
}

export function string(value: Buffer | string): Buffer {
  const bytes = typeof value === 'string' ? Buffer.from(value) : value
  return Buffer.concat([uint32(bytes.length), bytes])
}

/** Encodes a positive number of big-endian bytes: without leading zeros, but with one before a byte that would look negative. */
export function mpint(value: Buffer): Buffer {
  const start = value.findIndex((byte) => byte !== 0)
  const bytes = start === -1 ? Buffer.alloc(0) : value.subarray(start)
  return string(((bytes[0] ?? 0) & 0x80) === 0 ? bytes : Buffer.concat([Buffer.of(0), bytes]))
}
