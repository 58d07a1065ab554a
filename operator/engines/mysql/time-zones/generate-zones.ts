import { writeFile } from 'node:fs/promises'
import { readZones, textOf, type Transition, type Zone, ZONES, zonesOf } from './zones-file.ts'

/*
 * Writes zones.txt from the time zone database of this Node: `node operator/engines/mysql/time-zones/generate-zones.ts`, after an update of Node. Zones keep
 * their former names, which Intl does not list.
 */

const STEP_S = 7 * 86_400
const END = 2 ** 31 - 1

/** Offset from UTC of the time zone of the process, in seconds. `getTimezoneOffset` returns minutes. */
function offsetAt(seconds: number): number {
  const date = new Date(seconds * 1000)
  const local = Date.UTC(
    ...([date.getFullYear(), date.getMonth(), date.getDate()] as const),
    ...([date.getHours(), date.getMinutes(), date.getSeconds()] as const),
  )
  return local / 1000 - seconds
}

/** Returns the second in which the offset of `after` begins, if there is one transition between the two. */
function transitionBetween(before: number, after: number): number {
  const former = offsetAt(before)
  let [from, to] = [before, after]
  while (to - from > 1) {
    const middle = Math.floor((from + to) / 2)
    if (offsetAt(middle) === former) from = middle
    else to = middle
  }
  return to
}

/** Reads the time zone of the process. No zone has two transitions within a week. */
function readZone(): Omit<Zone, 'names'> {
  const offsets = [offsetAt(0)]
  const transitions: Transition[] = []
  for (let from = 0; from < END; from += STEP_S) {
    const to = Math.min(from + STEP_S, END)
    if (offsetAt(from) === offsetAt(to)) continue
    const at = transitionBetween(from, to)
    const offset = offsetAt(at)
    if (!offsets.includes(offset)) offsets.push(offset)
    transitions.push({ at, offset: offsets.indexOf(offset) })
  }
  return { offsets, transitions }
}

/**
 * Returns the name by which ICU finds a zone in the environment; undefined for an unknown zone. Of an abbreviation such as "Eire" it would
 * take only the offset that libc has for it.
 */
function canonicalName(timeZone: string): string | undefined {
  try {
    return new Intl.DateTimeFormat('en', { timeZone }).resolvedOptions().timeZone
  } catch {
    return undefined
  }
}

const former = zonesOf(await readZones()).zones.flatMap(({ names }) => names)
const all = new Set([...former, ...Intl.supportedValuesOf('timeZone')])
const zones = new Map<string, Zone>()
for (const name of [...all].toSorted()) {
  const canonical = canonicalName(name)
  if (canonical === undefined) continue
  process.env.TZ = canonical
  const zone = readZone()
  const key = JSON.stringify(zone)
  zones.set(key, { ...zone, names: [...(zones.get(key)?.names ?? []), name] })
}
await writeFile(ZONES, textOf({ version: process.versions.tz ?? '', zones: [...zones.values()] }))
