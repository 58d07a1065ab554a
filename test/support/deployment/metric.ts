import type { Mooring } from './mooring.ts'

/** Value of a metric without labels; NaN when it is not exposed. */
export async function metricOf(mooring: Pick<Mooring, 'ready'>, name: string): Promise<number> {
  const text = await (await fetch(mooring.ready.metricsUrl)).text()
  return Number(new RegExp(`^${name} (.*)$`, 'm').exec(text)?.[1])
}
