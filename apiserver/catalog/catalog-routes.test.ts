import { expect, test } from 'vitest'
import type { Plan } from '../../crds/plan.ts'
import { billableItemsOf, planView } from './catalog-routes.ts'

const price = (amount: string) => ({ amount, currency: 'EUR', unit: 'month' })
const storage = { id: 'storage', name: 'Storage', kind: 'storage', unit: 'GiB-month', price: price('0.10') } as const

function plan(name: string, amount: string): Plan {
  return {
    apiVersion: 'mooring.dev/v1alpha1',
    kind: 'Plan',
    metadata: { name, uid: name, resourceVersion: '1', generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: {
      name: `Plan ${name}`,
      cpu: 0.5,
      memoryMiB: 512,
      storageGiB: 10,
      engines: ['postgresql-15.4.0'],
      closedByDefault: false,
      price: price(amount),
      billableItems: [storage],
    },
  }
}

test('the id of a plan is the name of its object', () => {
  expect(planView(plan('small', '9.90'))).toEqual({
    id: 'small',
    name: 'Plan small',
    cpu: 0.5,
    memoryMiB: 512,
    storageGiB: 10,
    engines: ['postgresql-15.4.0'],
    price: price('9.90'),
  })
})

test('each plan is a billable item, and a shared item is listed once', () => {
  expect(billableItemsOf([plan('small', '9.90'), plan('large', '40')])).toEqual([
    { id: 'small', name: 'Plan small', kind: 'plan', unit: 'month', price: price('9.90') },
    { id: 'large', name: 'Plan large', kind: 'plan', unit: 'month', price: price('40') },
    storage,
  ])
})
