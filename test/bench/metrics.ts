import { setTimeout as delay } from 'node:timers/promises'

const POLL_MS = 50
const PATIENCE_MS = 120_000

/** Sum of all samples of a metric, or of those whose labels contain `labels`; 0 when there are none. */
export async function metric(url: string, name: string, labels = ''): Promise<number> {
  const text = await (await fetch(url)).text()
  return text
    .split('\n')
    .filter((line) => (line.startsWith(`${name} `) || line.startsWith(`${name}{`)) && line.includes(labels))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}

/** Returns the sum of a metric over several processes. */
export const sumOf = async (urls: readonly string[], name: string, labels?: string): Promise<number> =>
  (await Promise.all(urls.map((url) => metric(url, name, labels)))).reduce((sum, value) => sum + value, 0)

/** Whether at least `count` reconciles with these labels are done, and all queues are empty. */
export const areSettled = async (urls: readonly string[], labels: string, count: number): Promise<boolean> =>
  (await sumOf(urls, 'mooring_reconcile_total', labels)) >= count && (await sumOf(urls, 'mooring_queue_depth')) === 0

export interface PollOptions {
  /** Timeout in milliseconds; default: two minutes. */
  readonly patienceMs?: number
  /** Interval of checks in milliseconds; long where a check would disturb the measured processor. */
  readonly everyMs?: number
}

/** Polls until `holds` returns true. @throws Error after `patienceMs` */
export async function until(what: string, holds: () => Promise<boolean>, options: PollOptions = {}): Promise<void> {
  const { patienceMs = PATIENCE_MS, everyMs = POLL_MS } = options
  const end = performance.now() + patienceMs
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`timeout: ${what}`)
    await delay(everyMs)
  }
}
