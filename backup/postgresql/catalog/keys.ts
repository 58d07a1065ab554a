import { BackupId } from '../../agent-state.ts'
import { parseSegment, type Segment, segmentName } from './wal-names.ts'

/** Keys of the objects of one database, below its prefix. A listing shows all that decisions need: no object is read for it. */

const STAMP = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{3})Z$/

/** Writes a time for a key: `20261125T183005123Z`. */
export function stamp(ms: number): string {
  return new Date(ms).toISOString().replaceAll(/[-:.]/g, '')
}

/** Parses {@link stamp}; undefined for other text. */
export function parseStamp(text: string): number | undefined {
  const ms = Date.parse(text.replace(STAMP, '$1-$2-$3T$4:$5:$6.$7Z'))
  return Number.isNaN(ms) ? undefined : ms
}

/** A segment of WAL in the repository. */
export interface WalObject {
  readonly log: LogId
  readonly segment: Segment
  /** SHA-256 of the object's bytes, in hex. */
  readonly sha256: string
  /**
   * Time of the segment's mark in ms since the epoch, by the server's clock; absent without a mark. This segment and those before it have all
   * commits that were acknowledged by then. The segment also has a later commit, so recovery can stop at this time.
   */
  readonly markedAt?: number | undefined
}

/**
 * Name of a sequence of segments: identity of the data directory, and timeline. The name of a segment is not enough: a new data directory
 * for the same database begins with the same names.
 */
export type LogId = `${string}-${number}`

export const logOf = ({ systemIdentifier, timeline }: { readonly systemIdentifier: string; readonly timeline: number }): LogId =>
  `${systemIdentifier}-${timeline}`

export function walKey({ log, segment, sha256, markedAt }: WalObject): string {
  const mark = markedAt === undefined ? '' : `.${stamp(markedAt)}`
  return `wal/${log}/${segmentName(segment)}.${sha256}${mark}.gz`
}

const WAL_KEY = /^wal\/(\d+)-(\d+)\/([0-9A-F]{24})\.([0-9a-f]{64})(?:\.(\d{8}T\d{9}Z))?\.gz$/

/** Parses {@link walKey}; undefined for another key. */
export function parseWalKey(key: string): WalObject | undefined {
  const [, systemIdentifier = '', timeline, file = '', sha256 = '', mark] = WAL_KEY.exec(key) ?? []
  const segment = parseSegment(file)
  if (segment?.timeline !== Number(timeline)) return undefined
  const markedAt = mark === undefined ? undefined : parseStamp(mark)
  return { log: logOf({ systemIdentifier, timeline: segment.timeline }), segment, sha256, markedAt }
}

export const manifestKey = (id: string): string => `base/${id}/manifest.json`

export const partKey = (id: string, number: number): string => `base/${id}/data-${String(number).padStart(4, '0')}.tar.gz`

/** Id of the backup that an object belongs to; undefined for an object of none. */
export function backupOf(key: string): string | undefined {
  const [, id] = /^base\/([^/]+)\/[^/]+$/.exec(key) ?? []
  return BackupId.safeParse(id).success ? id : undefined
}

/** Id of a new backup. @param random four hex digits */
export function newBackupId(ms: number, random: string): string {
  return `${stamp(ms).replace(/\d{3}Z$/, 'Z')}-${random}`
}

/** Start of a backup in ms since the epoch, from its id. */
export function startOf(id: string): number {
  return parseStamp(id.replace(/Z-[0-9a-f]{4}$/, '000Z')) ?? 0
}

/** Key of the note that nothing was committed from a mark until a time, both in ms. It is kept when a gap follows. */
export const quietKey = (markedAt: number, until: number): string => `quiet/${stamp(markedAt)}-${stamp(until)}`

const QUIET_KEY = /^quiet\/(\d{8}T\d{9}Z)-(\d{8}T\d{9}Z)$/

/** Parses {@link quietKey}; undefined for another key. */
export function parseQuietKey(key: string): { markedAt: number; until: number } | undefined {
  const [, mark = '', end = ''] = QUIET_KEY.exec(key) ?? []
  const [markedAt, until] = [parseStamp(mark), parseStamp(end)]
  return markedAt === undefined || until === undefined ? undefined : { markedAt, until }
}

const CORRUPT = 'corrupt/'

/** Key of the note that an object is corrupt: it does not count any more. The object stays, for an examination by hand. */
export const corruptKey = (key: string): string => `${CORRUPT}${key}`

/** Key of the corrupt object that a note is about; undefined for another object. */
export function corruptOf(key: string): string | undefined {
  return key.startsWith(CORRUPT) ? key.slice(CORRUPT.length) : undefined
}
