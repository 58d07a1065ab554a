const NONE = '00000000-0000-0000-0000-000000000000'
const HIGHEST = 'ffffffff-ffff-ffff-ffff-ffffffffffff'
const TIME_DIGITS = 12
const LAST_TIME = 2 ** 48 - 1
const RECORD_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Upper bound of the ids on a page after `before`. An invalid id sorts before all others, so that its page is empty. */
export const startOf = (before: string | undefined): string =>
  before === undefined ? HIGHEST : isRecordId(before) ? before : NONE

/** Returns the lower bound of ids created at or after a time in milliseconds since the epoch. */
export function lowestId(atMs: number): string {
  const hex = Math.min(Math.max(0, Math.ceil(atMs)), LAST_TIME)
    .toString(16)
    .padStart(TIME_DIGITS, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`
}

/** Returns the creation time of an id in milliseconds since the epoch (RFC 9562, section 5.7). */
export const timeOfId = (id: string): number => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)

/** Whether a text is a UUID. A tunnel with another name has no rows. */
export const isUuid = (text: string): boolean => UUID.test(text)

/** Whether a text is a UUIDv7, as the id of every record must be. */
export const isRecordId = (text: string): boolean => RECORD_ID.test(text)
