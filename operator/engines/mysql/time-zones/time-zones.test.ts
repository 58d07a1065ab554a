import { expect, test } from 'vitest'
import { zoneStatements } from './time-zones.ts'
import { readZones, textOf, zonesOf } from './zones-file.ts'

/** Offset from UTC in seconds that the file has for a zone at a time. */
async function offsetOf(name: string, time: string): Promise<number | undefined> {
  const zone = zonesOf(await readZones()).zones.find(({ names }) => names.includes(name))
  const last = zone?.transitions.findLast(({ at }) => at * 1000 <= Date.parse(time))
  return zone?.offsets[last?.offset ?? 0]
}

test('zones.txt has the time zones of this Node: if not, run generate-zones.ts', async () => {
  const { version, zones } = zonesOf(await readZones())
  expect(version).toBe(process.versions.tz)
  const names = zones.flatMap((zone) => zone.names)
  expect(new Set(names).size).toBe(names.length)
  expect(names).toEqual(expect.arrayContaining([...Intl.supportedValuesOf('timeZone'), 'US/Eastern', 'Asia/Kolkata']))
  for (const name of names) expect(name).toMatch(/^[\w+/-]{2,64}$/)
})

test.each([
  { name: 'Europe/Berlin', time: '2026-03-29T00:59:59Z', offset: 3_600 },
  { name: 'Europe/Berlin', time: '2026-03-29T01:00:00Z', offset: 7_200 },
  { name: 'Europe/Berlin', time: '2037-12-01T00:00:00Z', offset: 3_600 },
  { name: 'Eire', time: '2026-07-01T00:00:00Z', offset: 3_600 },
  { name: 'EST', time: '2026-07-01T00:00:00Z', offset: -18_000 },
  { name: 'America/St_Johns', time: '2026-07-01T00:00:00Z', offset: -9_000 },
  { name: 'UTC', time: '2026-07-01T00:00:00Z', offset: 0 },
])('$name is $offset s from UTC at $time', async ({ name, time, offset }) => {
  expect(await offsetOf(name, time)).toBe(offset)
})

test('textOf writes what zonesOf reads', async () => {
  const text = await readZones()
  expect(textOf(zonesOf(text))).toBe(text)
})

test('zoneStatements gives UTC its id after everything else', () => {
  const utc = { names: ['Etc/UTC', 'UTC', 'Zulu'], offsets: [0], transitions: [] }
  const berlin = { names: ['Europe/Berlin'], offsets: [3_600, 7_200], transitions: [{ at: 323_830_800, offset: 1 }] }
  expect(zoneStatements({ zones: [utc, berlin], firstId: 7 })).toMatchInlineSnapshot(`
    [
      "REPLACE INTO mysql.time_zone (Time_zone_id, Use_leap_seconds) VALUES (7,'N'),(8,'N')",
      "REPLACE INTO mysql.time_zone_transition_type (Time_zone_id, Transition_type_id, \`Offset\`, Is_DST, Abbreviation) VALUES (7,0,0,0,''),(8,0,3600,0,''),(8,1,7200,0,'')",
      "REPLACE INTO mysql.time_zone_transition (Time_zone_id, Transition_time, Transition_type_id) VALUES (8,323830800,1)",
      "REPLACE INTO mysql.time_zone_name (Name, Time_zone_id) VALUES ('Etc/UTC',7),('Zulu',7),('Europe/Berlin',8),('UTC',7)",
      "DELETE FROM mysql.time_zone_name WHERE Time_zone_id NOT BETWEEN 7 AND 8",
      "DELETE FROM mysql.time_zone_transition WHERE Time_zone_id NOT BETWEEN 7 AND 8",
      "DELETE FROM mysql.time_zone_transition_type WHERE Time_zone_id NOT BETWEEN 7 AND 8",
      "DELETE FROM mysql.time_zone WHERE Time_zone_id NOT BETWEEN 7 AND 8",
    ]
  `)
})
