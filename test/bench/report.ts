import { cpus, loadavg, release, totalmem } from 'node:os'
import type { Finding, Measure } from './measure.ts'

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
