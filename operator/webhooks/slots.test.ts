import { expect, test } from 'vitest'
import { createDeliverySlots } from './slots.ts'

const limits = { total: 7, perNamespace: 4, reserved: 1, perWebhook: 2, slowPerNamespace: 1 }
const ofNamespace = (namespace: string) => (namespace === 'n' ? ['a', 'b', 'c', 'd'] : [])
const of = (id: string, webhook: string, namespace = 'n') => ({ id, webhook, namespace })

/** Creates slots in which the last attempts of these webhooks have lasted so long, in milliseconds. */
function slotsAfter(durations: Readonly<Record<string, number>>) {
  const slots = createDeliverySlots(ofNamespace, limits)
  for (const [webhook, durationMs] of Object.entries(durations)) slots.take(of('before', webhook))?.(durationMs)
  return slots
}
const taken = (...slots: unknown[]) => slots.map((slot) => slot !== undefined)

test('a webhook, a namespace and all together have so many slots; a released one is free again', () => {
  const slots = slotsAfter({ a: 1, b: 1, c: 1, d: 1 })
  const [first, second] = [slots.take(of('1', 'a')), slots.take(of('2', 'a'))]
  expect(taken(first, second, slots.take(of('3', 'a')))).toEqual([true, true, false])
  expect(slots.busy()).toEqual(['a'])
  expect(taken(slots.take(of('4', 'b')))).toEqual([true])
  // The last slot is for a webhook without an attempt under way.
  expect(slots.busy()).toEqual(['a', 'b'])
  expect(taken(slots.take(of('5', 'b')), slots.take(of('6', 'c')), slots.take(of('7', 'd')))).toEqual([false, true, false])
  expect(slots.busy()).toEqual(['a', 'b', 'c', 'd'])
  for (const id of ['8', '9', '10']) expect(slots.take(of(id, id, 'other'))).toBeDefined()
  expect([slots.free(), slots.take(of('11', 'f', 'third'))]).toEqual([0, undefined])
  first?.(1)
  expect([slots.free(), slots.underWay()]).toEqual([1, ['2', '4', '6', '8', '9', '10']])
  // The webhooks of the other namespace have not answered yet.
  expect(slots.busy()).toEqual(['a', 'b', 'c', '8', '9', '10'])
})

test('a delivery is under way once', () => {
  const slots = createDeliverySlots(ofNamespace, limits)
  slots.take(of('1', 'a'))
  expect(slots.take(of('1', 'a'))).toBeUndefined()
})

test('a webhook has one slot until its receiver has answered quickly', () => {
  const slots = createDeliverySlots(ofNamespace, limits)
  const first = slots.take(of('1', 'a'))
  expect(taken(slots.take(of('2', 'a')))).toEqual([false])
  first?.(100)
  expect(taken(slots.take(of('2', 'a')), slots.take(of('3', 'a')))).toEqual([true, true])
})

test('slow webhooks of a namespace share few slots, until they answer quickly; an attempt without a request changes nothing', () => {
  const slots = slotsAfter({ a: 10_000, b: 10_000, c: 1 })
  const slow = slots.take(of('1', 'a'))
  expect(slots.busy()).toEqual(['a', 'b'])
  expect(taken(slots.take(of('2', 'b')), slots.take(of('3', 'c')), slots.take(of('4', 'c')))).toEqual([false, true, true])
  slow?.()
  const again = slots.take(of('5', 'a'))
  expect(taken(again, slots.take(of('6', 'b')))).toEqual([true, false])
  again?.(1)
  expect(slots.busy()).toEqual(['c'])
})
