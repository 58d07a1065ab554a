import { createHash } from 'node:crypto'
import type { Session } from '../connection.ts'
import { readZones, type Zone, zonesOf } from './zones-file.ts'

/** Zones of one version of the data. The ids are of this version alone, so that the id of one name shows which version a server has. */
export interface LoadedZones {
  readonly zones: readonly Zone[]
  readonly firstId: number
}

/** The name that is written last: it has an id of the present version once all others do. */
const LAST = 'UTC'
/** Bits of an id for the zones of a version; the other bits come from the hash of the data. Ids stay below 2^31. */
const BITS_OF_ZONES = 11

let read: Promise<LoadedZones> | undefined

/** Reads the data once in the lifetime of the process. */
function loadZones(): Promise<LoadedZones> {
  read ??= readZones().then((text) => {
    const version = createHash('sha256').update(text).digest().readUInt32BE(0) >>> (BITS_OF_ZONES + 1)
    return { zones: zonesOf(text).zones, firstId: version * 2 ** BITS_OF_ZONES + 1 }
  })
  return read
}

/** Returns the statements that replace the zones of a server. Each may be the last before a crash: a zone is complete before a name has its id. */
export function zoneStatements({ zones, firstId }: LoadedZones): readonly string[] {
  const each = zones.map((zone, n) => ({ ...zone, id: firstId + n }))
  const types = each.flatMap(({ id, offsets }) => offsets.map((offset, type) => `(${id},${type},${offset},0,'')`))
  const transitions = each.flatMap(({ id, transitions }) => transitions.map(({ at, offset }) => `(${id},${at},${offset})`))
  const names = each.flatMap(({ id, names }) => names.map((name) => ({ name, row: `('${name}',${id})` })))
  const last = names.toSorted((a, b) => Number(a.name === LAST) - Number(b.name === LAST))
  const former = `Time_zone_id NOT BETWEEN ${firstId} AND ${firstId + zones.length - 1}`
  return [
    `REPLACE INTO mysql.time_zone (Time_zone_id, Use_leap_seconds) VALUES ${each.map(({ id }) => `(${id},'N')`).join()}`,
    `REPLACE INTO mysql.time_zone_transition_type (Time_zone_id, Transition_type_id, \`Offset\`, Is_DST, Abbreviation) VALUES ${types.join()}`,
    `REPLACE INTO mysql.time_zone_transition (Time_zone_id, Transition_time, Transition_type_id) VALUES ${transitions.join()}`,
    `REPLACE INTO mysql.time_zone_name (Name, Time_zone_id) VALUES ${last.map(({ row }) => row).join()}`,
    ...['time_zone_name', 'time_zone_transition', 'time_zone_transition_type', 'time_zone'].map(
      (table) => `DELETE FROM mysql.${table} WHERE ${former}`,
    ),
  ]
}

/**
 * Fills the server's time zone tables, unless it has this version of the data. A zone that a session has used since the start of the server
 * keeps its former offsets until the next start. Never rejects: a server whose disk is full needs its administration, and named zones can
 * wait for the next connection to it.
 */
export async function loadTimeZones(session: Session): Promise<void> {
  const loaded = await loadZones()
  try {
    if (await isComplete(session, loaded)) return
    for (const statement of zoneStatements(loaded)) await session.query(statement)
  } catch {
    // What follows on this connection meets the same error if it lasts.
  }
}

async function isComplete(session: Session, { zones, firstId }: LoadedZones): Promise<boolean> {
  const found = await session.query('SELECT 1 FROM mysql.time_zone_name WHERE Name = ? AND Time_zone_id BETWEEN ? AND ?', [
    LAST,
    firstId,
    firstId + zones.length - 1,
  ])
  return found.length > 0
}
