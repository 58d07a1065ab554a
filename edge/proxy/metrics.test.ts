import fc from 'fast-check'
import { Histogram, Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { TalliedHistogram } from './metrics.ts'

/** Without exemplars, which are not enabled. */
const asJson = async (registry: Registry) =>
  (await registry.getMetricsAsJSON()).map((metric) => ({
    ...metric,
    values: metric.values.map((value) => ({ ...value, exemplar: undefined })),
  }))

test('a tallied histogram reports the same as one of prom-client', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.double({ min: 0, max: 20, noNaN: true })), fc.constantFrom(0.5, 1, 5), async (values, edge) => {
      const [ours, theirs] = [new Registry(), new Registry()]
      const shape = { name: 'seconds', help: 'How long.', labelNames: ['origin'], buckets: [0.5, 1, 5] }
      const tally = new TalliedHistogram({ ...shape, registers: [ours] }).tally({ origin: 'edge' })
      const observed = new Histogram({ ...shape, registers: [theirs] })
      for (const value of [...values, edge]) {
        tally.add(value)
        observed.observe({ origin: 'edge' }, value)
      }
      expect(await ours.metrics()).toBe(await theirs.metrics())
      expect(await asJson(ours)).toEqual(await asJson(theirs))
    }),
  )
})
