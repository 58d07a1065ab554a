/** Requests whose ids were made within so many milliseconds may share a row (chunks.ts). Of an id it is the first five bytes, and a day is so many of them whole. */
export const CHUNK_MS = 256
/** Bytes of a row at the most, but for one request that has more: SQLite gives rows of more than 1,000 pages of their own. */
export const ROW_LENGTH = 900
