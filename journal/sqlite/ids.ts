import type { DatabaseSync } from 'node:sqlite'

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
const HIGHEST_ID: Uint8Array = new Uint8Array(BYTES).fill(0xff)

/** Upper bound of the ids on a page after `before`. An invalid id sorts before all others, so that its page is empty. */
export const startOf = (before: string | undefined): Uint8Array =>
  before === undefined ? HIGHEST_ID : (bytesOfId(before) ?? new Uint8Array(BYTES))

/** Small numbers for the uids of tunnels, which every row would repeat otherwise. */
export interface TunnelNumbers {
  /** Returns the number of a tunnel, and assigns one if it has none. Call it within a transaction. */
  of(uid: string): number
  /** Discards the numbers in memory, after a rollback. */
  forget(): void
}

export function createTunnelNumbers(db: DatabaseSync): TunnelNumbers {
  const known = new Map<string, number>()
  const find = db.prepare('SELECT number FROM tunnels WHERE uid = ?')
  const add = db.prepare('INSERT INTO tunnels (uid) VALUES (?)')

  return {
    of(uid) {
      const number = known.get(uid) ?? Number(find.get(uid)?.number ?? add.run(uid).lastInsertRowid)
      known.set(uid, number)
      return number
    },
    forget: () => known.clear(),
  }
}
