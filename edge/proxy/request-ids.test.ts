import { expect, test } from 'vitest'
import { requestId } from './request-ids.ts'

const UUID = /^([0-9a-f]{8})-([0-9a-f]{4})-7([0-9a-f]{3})-([89ab])([0-9a-f]{3})-([0-9a-f]{12})$/
const COUNT = 20_000
/** Number of ids in which each pair of bits is compared. */
const PAIRED = 500

test('ids are UUIDv7 of their creation time', () => {
  const before = Date.now()
  const ids = Array.from({ length: COUNT }, requestId)
  const after = Date.now()
  const times = ids.map((id) => {
    const [, high = '', low = ''] = UUID.exec(id) ?? []
    return parseInt(`${high}${low}`, 16)
  })
  expect(times[0]).toBeGreaterThanOrEqual(before)
  expect(times.at(-1)).toBeLessThanOrEqual(after)
  expect(times).toEqual(times.toSorted((one, other) => one - other))
})

test('ids are unique, each random bit is set in about half of them, and no two bits correlate', () => {
  const ids = Array.from({ length: COUNT }, requestId)
  expect(new Set(ids.map((id) => id.slice(15))).size).toBe(COUNT)

  const numbers = ids.map((id) => {
    const [, , , first = '', variant = '', second = '', third = ''] = UUID.exec(id) ?? []
    return BigInt(`0x${first}${second}${third}`) * 4n + BigInt('89ab'.indexOf(variant))
  })
  for (let bit = 0n; bit < 74n; bit++) {
    isHalf(numbers.filter((number) => (number >> bit) & 1n).length)
  }
  const pairs = Array.from({ length: 74 }, (_, one) =>
    Array.from({ length: one }, (_, other) => [BigInt(one), BigInt(other)] as const),
  ).flat()
  const few = numbers.slice(0, PAIRED)
  for (const [one, other] of pairs) isHalf(few.filter((number) => ((number >> one) ^ (number >> other)) & 1n).length, PAIRED)
})

function isHalf(part: number, whole = COUNT): void {
  // Eight standard deviations of a random result.
  expect(Math.abs(part - whole / 2)).toBeLessThan(4 * Math.sqrt(whole))
}
