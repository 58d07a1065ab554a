/**
 * Period in milliseconds: requests with ids of the same period may share a row (chunks.ts). A period is the first five bytes of
 * an id, and divides a day evenly.
 */
export const CHUNK_MS = 256
/**
 * Maximum bytes of a row, except for a single longer request. SQLite stores rows of more than about 1,000 bytes on separate
 * pages.
 */
export const ROW_LENGTH = 900
