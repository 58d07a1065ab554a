import { setTimeout as delay } from 'node:timers/promises'

const LOOK_MS = 50
const PATIENCE_MS = 120_000

/** Sum of all samples of a metric, or of those whose labels contain `labels`; 0 when there are none. */
export async function metric(url: string, name: string, labels = ''): Promise<number> {
  const text = await (await fetch(url)).text()
  return text
    .split('\n')
    .filter((line) => (line.startsWith(`${name} `) || line.startsWith(`${name}{`)) && line.includes(labels))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}

/** The same over several processes. */
export const sumOf = async (urls: readonly string[], name: string, labels?: string): Promise<number> =>
  (await Promise.all(urls.map((url) => metric(url, name, labels)))).reduce((sum, value) => sum + value, 0)

/** Whether so many reconciles (by the labels of their metric) are done, and no queue has a key. */
export const areSettled = async (urls: readonly string[], labels: string, count: number): Promise<boolean> =>
  (await sumOf(urls, 'mooring_reconcile_total', labels)) >= count && (await sumOf(urls, 'mooring_queue_depth')) === 0

export interface Looks {
  /** Two minutes unless given. */
  readonly patienceMs?: number
  /** Between two looks: seldom where a look costs what is measured its processor. */
  readonly everyMs?: number
}

/** Looks again and again until `holds`. @throws Error after `patienceMs` */
export async function until(what: string, holds: () => Promise<boolean>, looks: Looks = {}): Promise<void> {
  const { patienceMs = PATIENCE_MS, everyMs = LOOK_MS } = looks
  const end = performance.now() + patienceMs
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`it took too long until ${what}`)
    await delay(everyMs)
  }
}
