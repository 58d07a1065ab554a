import { readFile } from 'node:fs/promises'

/**
 * The offsets of all time zones from 1970 to 2038, the range of TIMESTAMP: those of Node's ICU, written by generate-zones.ts. The first line
 * names the version of the data. Each further line is a zone: its names, its offsets from UTC in seconds, and its transitions. The first
 * offset holds before the first transition. A transition is one digit, the index of the offset that it begins, and the seconds since the
 * former transition, or since 1970; all in base 36.
 */
export const ZONES = new URL('zones.txt', import.meta.url)

/** Change of the offset of a zone, `at` in seconds since 1970. */
export interface Transition {
  readonly at: number
  /** Index of the offset that holds from then on. */
  readonly offset: number
}

export interface Zone {
  readonly names: readonly string[]
  /** Offsets from UTC in seconds. */
  readonly offsets: readonly number[]
  readonly transitions: readonly Transition[]
}

export interface Zones {
  /** Version of the time zone database, such as "2026c". */
  readonly version: string
  readonly zones: readonly Zone[]
}

const BASE = 36

/** Returns the text of the file. */
export function textOf({ version, zones }: Zones): string {
  const lines = zones.map(({ names, offsets, transitions }) => {
    const steps = transitions.map(({ at, offset }, n) => {
      const seconds = at - (transitions[n - 1]?.at ?? 0)
      return `${offset.toString(BASE)}${seconds.toString(BASE)}`
    })
    return [names.join(','), offsets.join(','), steps.join(',')].join(' ').trimEnd()
  })
  return [version, ...lines, ''].join('\n')
}

/** Parses the text of the file, which is trusted. */
export function zonesOf(text: string): Zones {
  const [version = '', ...lines] = text.trimEnd().split('\n')
  return { version, zones: lines.map(zoneOf) }
}

function zoneOf(line: string): Zone {
  const [names = '', offsets = '', steps = ''] = line.split(' ')
  let at = 0
  const transitions = steps
    .split(',')
    .filter(Boolean)
    .map((step) => {
      at += parseInt(step.slice(1), BASE)
      return { at, offset: parseInt(step.slice(0, 1), BASE) }
    })
  return { names: names.split(','), offsets: offsets.split(',').map(Number), transitions }
}

export const readZones = (): Promise<string> => readFile(ZONES, 'utf8')
