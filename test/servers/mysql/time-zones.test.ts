import { describe, expect, test } from 'vitest'
import { underTest } from '../../support/families/motors-under-test.ts'
import { ask, mysqlBench, rows } from '../../support/mysql/bench.ts'
import { MOTORS } from '../../support/mysql/server.ts'

/** Local times and the same moments in UTC: winter, summer, the second before summer time, and an old name of a zone. */
const MOMENTS = [
  ['Europe/Berlin', '2026-01-15 12:00:00', '2026-01-15 13:00:00'],
  ['Europe/Berlin', '2026-07-15 12:00:00', '2026-07-15 14:00:00'],
  ['Europe/Berlin', '2026-03-29 00:59:59', '2026-03-29 01:59:59'],
  ['Europe/Berlin', '2026-03-29 01:00:00', '2026-03-29 03:00:00'],
  ['Asia/Kolkata', '1970-06-01 00:00:00', '1970-06-01 05:30:00'],
  ['US/Eastern', '2037-07-15 12:00:00', '2037-07-15 08:00:00'],
  ['Australia/Lord_Howe', '2026-01-15 00:00:00', '2026-01-15 11:00:00'],
] as const

describe.each(underTest(MOTORS))('time zones of $motor', ({ motor, family }) => {
  const bench = mysqlBench(motor)
  /** Contents of the tables, in which an id shows the version of the data. */
  const stored = async () => {
    const root = await bench.root()
    const tables = ['time_zone', 'time_zone_name', 'time_zone_transition', 'time_zone_transition_type']
    return Promise.all(tables.map((table) => ask(root, `SELECT CONCAT(COUNT(*), ' ', MIN(Time_zone_id)) FROM mysql.${table}`)))
  }

  test('a tenant converts to named zones and back', async () => {
    const session = await bench.as(await bench.tenant('traveller'))
    for (const [zone, utc, local] of MOMENTS) {
      const sql = `SELECT CAST(CONVERT_TZ('${utc}', 'UTC', '${zone}') AS CHAR)`
      expect(await ask(session, sql)).toBe(local)
      expect(await ask(session, `SELECT CAST(CONVERT_TZ('${local}', '${zone}', '+00:00') AS CHAR)`)).toBe(utc)
    }
    await session.query("SET time_zone = 'Europe/Berlin'")
    expect(await ask(session, 'SELECT CAST(FROM_UNIXTIME(1784116800) AS CHAR)')).toBe('2026-07-15 14:00:00')
  })

  test('harden completes what a crash left, and replaces zones of another version', async () => {
    const before = await stored()
    const root = await bench.root()
    // UTC gets its name last. A zone of another version has an id of its own.
    await root.query("DELETE FROM mysql.time_zone_name WHERE Name IN ('UTC', 'Europe/Berlin')")
    await root.query("REPLACE INTO mysql.time_zone_name VALUES ('Europe/Paris', 1); REPLACE INTO mysql.time_zone VALUES (1, 'N')")
    await bench.admin.harden()
    expect(await stored()).toEqual(before)
    await bench.server.crash()
    expect(await stored()).toEqual(before)
    const session = await bench.as(await bench.tenant('later'))
    expect(await ask(session, "SELECT CAST(CONVERT_TZ('2026-07-15 12:00:00', 'UTC', 'Europe/Paris') AS CHAR)")).toBe(
      '2026-07-15 14:00:00',
    )
  })

  test('harden writes nothing to a server that has the zones', async () => {
    const root = await bench.root()
    const written = async () => (await rows(root, "SHOW GLOBAL STATUS LIKE 'Com_replace'"))[0]?.Value
    const before = await written()
    await bench.admin.harden()
    expect(await written()).toBe(before)
  })

  test('sessions have the SQL modes that the docs name', async () => {
    const session = await bench.as(await bench.tenant('strict'))
    const modes = String(await ask(session, 'SELECT @@GLOBAL.sql_mode')).split(',')
    const common = ['STRICT_TRANS_TABLES', 'ERROR_FOR_DIVISION_BY_ZERO', 'NO_ENGINE_SUBSTITUTION']
    const own = family === 'mariadb' ? ['NO_AUTO_CREATE_USER'] : ['ONLY_FULL_GROUP_BY', 'NO_ZERO_IN_DATE', 'NO_ZERO_DATE']
    expect(new Set(modes)).toEqual(new Set([...common, ...own]))
  })
})
