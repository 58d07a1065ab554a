import { expect, test } from 'vitest'
import { requestId } from './request-ids.ts'

const UUID = /^([0-9a-f]{8})-([0-9a-f]{4})-7([0-9a-f]{3})-([89ab])([0-9a-f]{3})-([0-9a-f]{12})$/
const COUNT = 20_000

test('ids are UUIDv7 of the time when they are made', () => {
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

test('no two are the same, and each of their random bits is set in about half of them', () => {
  const ids = Array.from({ length: COUNT }, requestId)
  expect(new Set(ids.map((id) => id.slice(15))).size).toBe(COUNT)

  const numbers = ids.map((id) => {
    const [, , , first = '', variant = '', second = '', third = ''] = UUID.exec(id) ?? []
    return BigInt(`0x${first}${second}${third}`) * 4n + BigInt('89ab'.indexOf(variant))
  })
  for (let bit = 0n; bit < 74n; bit++) {
    const set = numbers.filter((number) => (number >> bit) & 1n).length
    // Eight standard deviations of what chance does.
    expect(Math.abs(set - COUNT / 2)).toBeLessThan(4 * Math.sqrt(COUNT))
  }
})
