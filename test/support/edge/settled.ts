import { vi } from 'vitest'
import { SOON } from '../patience.ts'

/**
 * Waits until a value has settled: several checks in a row find the same number. Between two checks the event loop handles all I/O that
 * is pending, so that a pause of a busy machine does not count.
 * @param checks number of equal checks, which are 50 ms apart
 */
export async function settled(read: () => number, checks = 10): Promise<number> {
  let [value, equal] = [Number.NaN, 0]
  await vi.waitUntil(() => {
    const now = read()
    equal = now === value ? equal + 1 : 0
    value = now
    return equal >= checks
  }, SOON)
  return value
}
