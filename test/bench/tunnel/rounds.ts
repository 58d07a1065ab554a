import { type Figure, type Finding, finding } from '../measure.ts'
import { median, ratio } from '../statistics.ts'
import type { Side } from './pair.ts'
import { type Load, type Loaded, wrk } from './wrk.ts'

/** Measurement of one side under load. */
export interface Sample extends Loaded {
  /** Processor time of its servers for each request, in microseconds. */
  readonly cpuMicroseconds: number
}

/** @throws Error when a request failed */
export async function sample(side: Side, load: Load): Promise<Sample> {
  const before = await side.cpu()
  const loaded = await wrk(side, load)
  if (loaded.failed > 0) throw new Error(`${side.name} failed ${loaded.failed} of ${loaded.requests} requests:\n${loaded.output}`)
  return { ...loaded, cpuMicroseconds: (((await side.cpu()) - before) / loaded.requests) * 1e6 }
}

/** Samples of the edge and of its peer. */
export type Both<T> = readonly [readonly T[], readonly T[]]

/** Measures the two sides in turn, in alternating order; a first round is not counted. */
export async function rounds<T>(sides: readonly [Side, Side], count: number, take: (side: Side) => Promise<T>): Promise<Both<T>> {
  const taken: readonly [T[], T[]] = [[], []]
  for (const side of sides) await take(side)
  for (let round = 0; round < count; round++) {
    for (const index of round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) taken[index].push(await take(sides[index]))
  }
  return taken
}

/** Returns the ratio of the two medians, in blocks of rounds. */
export function compared([edge, peer]: Both<number>, block: number): Figure {
  const { median: value, low, high } = ratio(edge, peer, block)
  return { value, unit: '×', digits: 2, spread: `${low.toFixed(2)}–${high.toFixed(2)}` }
}

/** Returns the median of the edge, followed by that of its peer. */
export function beside([edge, peer]: Both<number>, unit: string, digits = 1): Figure {
  return { value: median(edge), unit, digits, spread: `sshd + nginx ${median(peer).toFixed(digits)}` }
}

export const each = <T>([edge, peer]: Both<T>, of: (taken: T) => number): Both<number> => [edge.map(of), peer.map(of)]

/** Returns the finding for a figure that must be at least `limit`. */
export function atLeast(what: string, figure: Figure, limit: number): Finding {
  return {
    ...finding(what, figure),
    target: `≥ ${limit}${figure.unit === '' ? '' : ` ${figure.unit}`}`,
    holds: figure.value >= limit,
  }
}
