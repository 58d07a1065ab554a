import { cpus, loadavg, release, totalmem } from 'node:os'

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

/** Result of a measure, with the machine's load average over one minute before and after. */
export interface Result {
  readonly measure: Measure
  readonly findings: readonly Finding[]
  readonly load: { readonly before: number; readonly after: number }
}

const GIB = 1024 ** 3

/** Describes the machine: processors, memory, kernel, Node. */
export function machine(): string {
  const processors = cpus()
  const model = processors[0]?.model.replaceAll(/\s+/g, ' ').trim() ?? 'unknown processor'
  const memory = Math.round(totalmem() / GIB)
  return `${processors.length} × ${model}, ${memory} GiB, Linux ${release()}, Node ${process.versions.node}`
}

export const load = (): number => loadavg()[0] ?? 0

function resultOf({ holds }: Finding): string {
  return holds === undefined ? '' : holds ? 'yes' : '**no**'
}

/** Formats the results as a Markdown table under a line with date and machine. Pure except for the machine. */
export function report(results: readonly Result[], date: Date): string {
  const rows = results.flatMap(({ measure, findings, load: { before, after } }) =>
    findings.map((finding) =>
      [
        measure.name,
        finding.what,
        finding.result,
        finding.target ?? '',
        resultOf(finding),
        `${before.toFixed(1)} → ${after.toFixed(1)}`,
      ].join(' | '),
    ),
  )
  const lines = [
    ['measure', 'figure', 'result', 'target', 'holds', 'load'].join(' | '),
    Array(6).fill('---').join(' | '),
    ...rows,
  ]
  return `${date.toISOString().slice(0, 10)}, ${machine()}\n\n${lines.map((line) => `| ${line} |`).join('\n')}\n`
}
