/** One line of a result. */
export interface Finding {
  readonly what: string
  /** With its unit and spread, as it is printed. */
  readonly result: string
  /** With its unit; absent when the figure is only told. */
  readonly target?: string | undefined
  readonly holds?: boolean | undefined
}

/** One measure: `npm run bench -- name`. It starts what it needs and leaves nothing behind. */
export interface Measure {
  readonly name: string
  /** How it is measured, in a sentence or two, for the report. */
  readonly method: string
  run(): Promise<readonly Finding[]>
}

/** A figure with its spread. */
export interface Figure {
  readonly value: number
  /** `ms`, `s`, `MB`, `%`, `×`, or nothing for a count. */
  readonly unit: string
  readonly digits?: number
  /** As printed: `± 0.3`, `0.21–0.28`. */
  readonly spread?: string | undefined
}

const print = (value: number, unit: string, digits: number): string => `${value.toFixed(digits)}${unit === '' ? '' : ` ${unit}`}`

/** A figure that must not exceed `limit`, or that has no target. */
export function finding(what: string, figure: Figure, limit?: number): Finding {
  const { value, unit, digits = 1, spread } = figure
  const result = print(value, unit, digits) + (spread === undefined ? '' : ` (${spread})`)
  if (limit === undefined) return { what, result }
  return { what, result, target: `≤ ${limit}${unit === '' ? '' : ` ${unit}`}`, holds: value <= limit }
}
