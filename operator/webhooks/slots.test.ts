import { expect, test } from 'vitest'
import { createSlots } from './slots.ts'

const limits = { total: 5, perNamespace: 3, perWebhook: 2 }
const of = (id: string, webhook: string, namespace = 'n') => ({ id, webhook, namespace })

test('a webhook, a namespace and all together have so many slots; a released one is free again', () => {
  const slots = createSlots((namespace) => (namespace === 'n' ? ['a', 'b', 'c'] : []), limits)
  const [first, second] = [slots.take(of('1', 'a')), slots.take(of('2', 'a'))]
  expect([first, second, slots.take(of('3', 'a'))].map((slot) => slot !== undefined)).toEqual([true, true, false])
  expect(slots.busy()).toEqual(['a'])
  expect(slots.take(of('4', 'b'))).toBeDefined()
  expect(slots.take(of('5', 'c'))).toBeUndefined()
  expect(new Set(slots.busy())).toEqual(new Set(['a', 'b', 'c']))
  expect(slots.take(of('6', 'd', 'other'))).toBeDefined()
  expect(slots.take(of('7', 'e', 'other'))).toBeDefined()
  expect([slots.free(), slots.take(of('8', 'f', 'third'))]).toEqual([0, undefined])
  first?.()
  expect([slots.free(), slots.underWay()]).toEqual([1, ['2', '4', '6', '7']])
  expect(slots.busy()).toEqual([])
})

test('a delivery is under way once', () => {
  const slots = createSlots(() => [], limits)
  slots.take(of('1', 'a'))
  expect(slots.take(of('1', 'a'))).toBeUndefined()
})
