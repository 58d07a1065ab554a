import { expect, test } from 'vitest'
import type { CreateMetadata, Plan } from '../../api/types.ts'
import { alsoBilled, enginesOf, plansFor, priceOf, regionsFor, sizeOf } from './plans.ts'

const price = { amount: '12.50', currency: 'EUR', unit: 'month' }
const plan = (id: string, changes: Partial<Plan> = {}): Plan => ({
  ...{ id, name: id, cpu: 1, memoryMiB: 1_024, storageGiB: 10, engines: ['mysql-8.0.29'], price, ...changes },
})
const motor = (id: 'mysql-8.0.29' | 'mariadb-10.7.4', supported = true) => ({ id, version: '', supported })
const region = (name: string, motors: CreateMetadata['regions'][number]['motors']) => ({
  id: name,
  name,
  regionId: 1,
  motors,
  tunnels: false,
})
const catalog = {
  engines: [motor('mysql-8.0.29'), motor('mariadb-10.7.4')],
  regions: [region('one', [motor('mysql-8.0.29')]), region('two', [motor('mysql-8.0.29', false), motor('mariadb-10.7.4')])],
  plans: [plan('small'), plan('other', { engines: ['mongodb-7.0.2'] })],
}

test('a plan has its size and price in words', () => {
  expect(sizeOf(plan('small'))).toBe('1 CPU, 1 GiB memory, 10 GiB storage')
  expect(sizeOf(plan('tiny', { cpu: 0.5, memoryMiB: 640, storageGiB: 1 }))).toBe('0.5 CPUs, 640 MiB memory, 1 GiB storage')
  expect(priceOf(price)).toBe('12.50 EUR / month')
  expect(priceOf({ ...price, amount: '0.00' })).toBe('free')
  expect(priceOf({ ...price, amount: '0.01' })).toBe('0.01 EUR / month')
})

test('an engine is offered when a region runs it and a plan allows it', () => {
  expect(enginesOf(catalog)).toEqual(['mysql-8.0.29'])
  expect(regionsFor(catalog, 'mysql-8.0.29').map(({ name }) => name)).toEqual(['one'])
  expect(plansFor(catalog, 'mysql-8.0.29').map(({ id }) => id)).toEqual(['small'])
})

test('plans are in the order of their size', () => {
  const plans = [plan('c', { storageGiB: 20 }), plan('b', { memoryMiB: 2_048 }), plan('a')]
  expect(plansFor({ plans }, 'mysql-8.0.29').map(({ id }) => id)).toEqual(['a', 'b', 'c'])
})

test('what is billed beside plans is one sentence', () => {
  const item = {
    id: 'storage',
    name: 'Storage',
    kind: 'storage',
    unit: 'GiB-month',
    price: { ...price, unit: 'GiB-month' },
  } as const
  const items = [{ ...item, id: 'small', kind: 'plan' as const }, item]
  expect(alsoBilled({ billableItems: items })).toBe('Also billed: Storage, 12.50 EUR / GiB-month.')
  expect(alsoBilled({ billableItems: [] })).toBeUndefined()
})
