const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/
const BYTES = 16
const TIME_BYTES = 6

/** Returns the 16 bytes of a UUIDv7, which sort by time as the text does; undefined for any other text. */
export function bytesOfId(id: string): Uint8Array | undefined {
  return UUID.test(id) ? Buffer.from(id.replaceAll('-', ''), 'hex') : undefined
}

export function idOfBytes(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, BYTES).toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** Returns the creation time of an id in milliseconds since the epoch (RFC 9562, section 5.7). */
export function timeOfId(bytes: Uint8Array): number {
  return Buffer.from(bytes.buffer, bytes.byteOffset, BYTES).readUIntBE(0, TIME_BYTES)
}

/** Returns the lower bound of ids created at or after a time in milliseconds since the epoch. */
export function lowestId(atMs: number): Uint8Array {
  const bytes = Buffer.alloc(BYTES)
  bytes.writeUIntBE(Math.min(Math.max(0, Math.ceil(atMs)), 2 ** 48 - 1), 0, TIME_BYTES)
  return bytes
}

/** Upper bound of all ids. */
export const HIGHEST_ID: Uint8Array = new Uint8Array(BYTES).fill(0xff)
