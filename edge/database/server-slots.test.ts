import { expect, test } from 'vitest'
import { ServerSlots } from './server-slots.ts'

const database = (id: string, organization = 'acme') => ({ id, namespace: `${organization}--prod` })

test('slots are limited for each database and for all together, and a slot that is given back is free', () => {
  const slots = new ServerSlots({ databaseConnections: 5, connectionsPerOrganization: 5, connectionsPerDatabase: 3 })
  const take = (id: string, times: number) => Array.from({ length: times }, () => slots.take(database(id)))
  expect(take('a', 4)).toEqual([true, true, true, false])
  expect(take('b', 3)).toEqual([true, true, false])
  slots.give(database('a'))
  expect(take('b', 2)).toEqual([true, false])
  for (const id of ['a', 'a', 'b', 'b', 'b']) slots.give(database(id))
  expect(slots.total).toBe(0)
  // A slot that was not taken is not given back.
  slots.give(database('a'))
  expect([slots.total, take('a', 4)]).toEqual([0, [true, true, true, false]])
})

test('an organization leaves slots to the others, in whichever namespace its databases are', () => {
  const slots = new ServerSlots({ databaseConnections: 5, connectionsPerOrganization: 3, connectionsPerDatabase: 2 })
  const [web, shop] = [database('a'), { id: 'b', namespace: 'acme--test' }]
  expect([web, web, shop, shop].map((of) => slots.take(of))).toEqual([true, true, true, false])
  expect([1, 2, 3].map(() => slots.take(database('c', 'other')))).toEqual([true, true, false])
  slots.give(web)
  expect([slots.take(shop), slots.take(web)]).toEqual([true, false])
})
