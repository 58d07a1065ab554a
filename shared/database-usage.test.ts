import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decimalOf, usageOf, withinMaximum, withPeriod } from './database-usage.ts'

const at = (time: string): number => Date.parse(`2026-03-01T${time}Z`)
const small = { plan: 'small', storageGiB: 10, storageItem: 'storage' }
const large = { plan: 'large', storageGiB: 40, storageItem: 'storage' }
const from = (time: string, what: typeof small) => ({ from: `2026-03-01T${time}Z`, ...what })
const told = (hours: ReturnType<typeof usageOf>) =>
  hours.map(({ item, unit, millionths, from, to }) => {
    const [begin, end] = [from, to].map((ms) => new Date(ms).toISOString().slice(11, 19))
    return `${item} ${decimalOf(millionths)} ${unit} ${begin}-${end}`
  })

test('usageOf splits the use at clock hours', () => {
  const periods = [from('08:30:00.000', small)]
  expect(told(usageOf(periods, { from: 0, to: at('10:15:00') }))).toEqual([
    'small 0.5 hour 08:30:00-09:00:00',
    'storage 5 GiB-hour 08:30:00-09:00:00',
    'small 1 hour 09:00:00-10:00:00',
    'storage 10 GiB-hour 09:00:00-10:00:00',
    'small 0.25 hour 10:00:00-10:15:00',
    'storage 2.5 GiB-hour 10:00:00-10:15:00',
  ])
})

test('usageOf counts backups by their size', () => {
  const periods = [{ ...from('08:30:00.000', small), backupMiB: 1_536, backupItem: 'backup' }]
  expect(told(usageOf(periods, { from: 0, to: at('09:00:00') }))).toEqual([
    'small 0.5 hour 08:30:00-09:00:00',
    'storage 5 GiB-hour 08:30:00-09:00:00',
    'backup 0.75 GiB-hour 08:30:00-09:00:00',
  ])
})

test('usageOf counts each plan of an hour for its time', () => {
  const periods = [from('08:00:00.000', small), from('08:15:00.000', large), from('08:45:00.000', small)]
  expect(told(usageOf(periods, { from: 0, to: at('09:00:00') }))).toEqual([
    'small 0.25 hour 08:00:00-08:15:00',
    'storage 2.5 GiB-hour 08:00:00-08:15:00',
    'large 0.5 hour 08:15:00-08:45:00',
    'storage 20 GiB-hour 08:15:00-08:45:00',
    'small 0.25 hour 08:45:00-09:00:00',
    'storage 2.5 GiB-hour 08:45:00-09:00:00',
  ])
})

test('usageOf ends with the deletion, counts no storage that the plan does not bill, and nothing before the first period', () => {
  const periods = [{ from: '2026-03-01T08:00:00.000Z', plan: 'small', storageGiB: 10 }]
  expect(told(usageOf(periods, { from: 0, to: at('12:00:00') }, at('08:06:00')))).toEqual(['small 0.1 hour 08:00:00-08:06:00'])
  expect(usageOf(periods, { from: at('09:00:00'), to: at('12:00:00') }, at('08:06:00'))).toEqual([])
  expect(usageOf(periods, { from: 0, to: at('07:00:00') })).toEqual([])
  expect(usageOf([], { from: 0, to: at('07:00:00') })).toEqual([])
})

test('usageOf yields the same sums for any division of a span into hours', () => {
  const start = at('00:00:00')
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 86_400_000 }), { minLength: 1, maxLength: 8 }),
      fc.integer({ min: 0, max: 24 }),
      (offsets, cut) => {
        const periods = offsets
          .toSorted((a, b) => a - b)
          .map((offset, index) => ({ from: new Date(start + offset).toISOString(), ...(index % 2 ? large : small) }))
        const middle = start + cut * 3_600_000
        const end = start + 86_400_000
        const parts = [...usageOf(periods, { from: 0, to: middle }), ...usageOf(periods, { from: middle, to: end })]
        expect(parts).toEqual(usageOf(periods, { from: 0, to: end }))
        const hours = parts.filter(({ unit }) => unit === 'hour').reduce((sum, { millionths }) => sum + millionths, 0)
        expect(Math.abs(hours - ((86_400_000 - Math.min(...offsets)) * 1_000_000) / 3_600_000)).toBeLessThan(parts.length + 1)
      },
    ),
  )
})

test('withPeriod adds a period for another plan or storage only', () => {
  const first = withPeriod([], small, new Date(at('08:00:00')))
  expect(first).toEqual([from('08:00:00.000', small)])
  expect(withPeriod(first, { ...small }, new Date(at('09:00:00')))).toBe(first)
  expect(withPeriod(first, large, new Date(at('09:00:00')))).toEqual([...first, from('09:00:00.000', large)])
})

test('the hours of all periods are those since the first one, whatever a clock that is set back says', () => {
  const start = at('00:00:00')
  fc.assert(
    fc.property(fc.array(fc.integer({ min: -3_600_000, max: 86_000_000 }), { maxLength: 8 }), (offsets) => {
      const begun = withPeriod([], small, new Date(start))
      const periods = offsets.reduce(
        (before, offset, index) => withPeriod(before, index % 2 ? small : large, new Date(start + offset)),
        begun,
      )
      const end = start + 86_400_000
      const hours = usageOf(periods, { from: 0, to: end }).filter(({ unit }) => unit === 'hour')
      const sum = hours.reduce((total, { from, to }) => total + to - from, 0)
      expect([sum, hours.every(({ from, to }) => from < to)]).toEqual([end - start, true])
    }),
  )
})

test.each([
  { name: 'keeps 100 periods, recorded or not', count: 100, recordedUntil: 0, first: 0 },
  { name: 'drops a period that is recorded up to its end', count: 101, recordedUntil: 60_000, first: 1 },
  { name: 'drops no period whose end is not recorded', count: 101, recordedUntil: 59_999, first: undefined },
  { name: 'drops no period of two when one is not recorded', count: 102, recordedUntil: 60_000, first: undefined },
])('withinMaximum $name', ({ count, recordedUntil, first }) => {
  const periods = Array.from({ length: count }, (_, minute) => ({ ...small, from: new Date(minute * 60_000).toISOString() }))
  expect(withinMaximum(periods, recordedUntil)).toEqual(first === undefined ? undefined : periods.slice(first))
})

test.each([
  [0, '0'],
  [1, '0.000001'],
  [500_000, '0.5'],
  [1_000_000, '1'],
  [744_000_100, '744.0001'],
])('decimalOf(%i) is %s', (millionths, text) => {
  expect(decimalOf(millionths)).toBe(text)
})
