/** Median and spread of a series of samples, in their unit. */
export interface Summary {
  readonly median: number
  readonly p99: number
  /** Median absolute deviation from the median: the distance of a typical sample, independent of outliers. */
  readonly mad: number
}

/**
 * Returns the smallest sample that at least `share` (0 to 1) of all samples do not exceed: nearest rank. @throws RangeError
 * without samples
 */
export function quantile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b)
  const found = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]
  if (found === undefined) throw new RangeError('there are no samples')
  return found
}

export const median = (samples: readonly number[]): number => quantile(samples, 0.5)

export function summary(samples: readonly number[]): Summary {
  const middle = median(samples)
  return { median: middle, p99: quantile(samples, 0.99), mad: median(samples.map((sample) => Math.abs(sample - middle))) }
}

/** Ratio of two series measured in turns: the median over blocks of rounds, and the lowest and highest block. */
export interface Ratio {
  readonly median: number
  readonly low: number
  readonly high: number
}

/**
 * Compares the medians of two interleaved series, one block of rounds at a time: a temporary disturbance of the machine affects
 * both sides of a block, and the spread of the blocks shows how reliable the ratio is. An incomplete last block is left out.
 */
export function ratio(of: readonly number[], to: readonly number[], block: number): Ratio {
  const ratios: number[] = []
  for (let start = 0; start + block <= Math.min(of.length, to.length); start += block) {
    ratios.push(median(of.slice(start, start + block)) / median(to.slice(start, start + block)))
  }
  return { median: median(ratios), low: Math.min(...ratios), high: Math.max(...ratios) }
}

/** Returns the duration of `work` in milliseconds. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}
