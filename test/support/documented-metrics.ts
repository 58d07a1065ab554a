import { readFile } from 'node:fs/promises'

/** Row of a metric in docs/metrics.md. */
export interface DocumentedMetric {
  readonly name: string
  readonly type: string
  readonly help: string
}

export async function documentedMetrics(): Promise<readonly DocumentedMetric[]> {
  const text = await readFile(new URL('../../docs/metrics.md', import.meta.url), 'utf8')
  return [...text.matchAll(/^\| `(mooring_\w+)` +\| (\w+) +\| [^|]+\| (.+?) +\|$/gm)].map(
    ([, name = '', type = '', help = '']) => ({
      ...{ name, type, help },
    }),
  )
}
