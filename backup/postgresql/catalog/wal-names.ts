/** Size of a segment of WAL in bytes. Mooring's servers are created with PostgreSQL's default. */
export const SEGMENT_BYTES = 16 * 1024 * 1024

/** Number of segments for each value of the second part of a name. */
const SEGMENTS_PER_ID = 2 ** 32 / SEGMENT_BYTES

/** A file of 16 MiB of the write-ahead log. */
export interface Segment {
  readonly timeline: number
  /** Position in the log: the next segment has the next number. */
  readonly number: number
}

const SEGMENT_NAME = /^([0-9A-F]{8})([0-9A-F]{8})([0-9A-F]{8})$/

/** Parses the name of a segment, such as `000000010000000000000003` (PostgreSQL, "WAL Internals"); undefined for another file. */
export function parseSegment(name: string): Segment | undefined {
  const [, timeline = '', id = '', within = ''] = SEGMENT_NAME.exec(name) ?? []
  const position = parseInt(within, 16)
  if (timeline === '' || position >= SEGMENTS_PER_ID) return undefined
  return { timeline: parseInt(timeline, 16), number: parseInt(id, 16) * SEGMENTS_PER_ID + position }
}

export function segmentName({ timeline, number }: Segment): string {
  return [timeline, Math.floor(number / SEGMENTS_PER_ID), number % SEGMENTS_PER_ID].map(hex8).join('')
}

function hex8(value: number): string {
  return value.toString(16).toUpperCase().padStart(8, '0')
}

/** Fields in the first bytes of a segment. */
export interface SegmentHeader {
  readonly systemIdentifier: string
  readonly number: number
}

/**
 * Reads the header of a segment (PostgreSQL, xlog_internal.h, XLogLongPageHeaderData); undefined for bytes that are not a segment of 16 MiB.
 * Does not return its timeline: the first segment of a timeline begins as a copy, and has the former timeline there.
 */
export function readSegmentHeader(bytes: Buffer): SegmentHeader | undefined {
  if (bytes.length !== SEGMENT_BYTES || (bytes.readUInt16LE(2) & IS_LONG_HEADER) === 0) return undefined
  const number = bytes.readBigUInt64LE(8) / BigInt(SEGMENT_BYTES)
  return { number: Number(number), systemIdentifier: `${bytes.readBigUInt64LE(24)}` }
}

const IS_LONG_HEADER = 0x0002
