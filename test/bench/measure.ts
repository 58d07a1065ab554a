/** One line of a result. */
export interface Finding {
  readonly what: string
  /** Result with unit and spread, as printed. */
  readonly result: string
  /** Target with its unit; undefined for a figure without one. */
  readonly target?: string | undefined
  readonly holds?: boolean | undefined
}

/** Measure, run by `npm run bench -- name`. It starts what it needs, and removes it at the end. */
export interface Measure {
  readonly name: string
  /** Method in one or two sentences, for the report. */
  readonly method: string
  run(): Promise<readonly Finding[]>
}

/** Figure with its spread. */
export interface Figure {
  readonly value: number
  /** `ms`, `s`, `MB`, `%`, `×`, or nothing for a count. */
  readonly unit: string
  readonly digits?: number
  /** Spread as printed: `± 0.3`, `0.21–0.28`. */
  readonly spread?: string | undefined
}

const print = (value: number, unit: string, digits: number): string => `${value.toFixed(digits)}${unit === '' ? '' : ` ${unit}`}`

/** Returns the finding for a figure that must not exceed `limit`, or that has no target. */
export function finding(what: string, figure: Figure, limit?: number): Finding {
  const { value, unit, digits = 1, spread } = figure
  const result = print(value, unit, digits) + (spread === undefined ? '' : ` (${spread})`)
  if (limit === undefined) return { what, result }
  return { what, result, target: `≤ ${limit}${unit === '' ? '' : ` ${unit}`}`, holds: value <= limit }
}
