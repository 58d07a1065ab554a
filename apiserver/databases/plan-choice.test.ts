import { describe, expect, test } from 'vitest'
import { dedicatedDatabase, namedPlan, plan, runningStatus } from '../../test/builders/dedicated.ts'
import { readyCondition } from '../../test/builders/resources.ts'
import { choosePlan, storageFloor } from './plan-choice.ts'

const plans = [namedPlan('large', { storageGiB: 50 }), plan(), namedPlan('other', { storageGiB: 99, engines: ['mongodb-7.0.2'] })]
const engine = 'postgresql-15.4.0'

test('a plan with the storage of the database fits', () => {
  expect(choosePlan(plans, { plan: 'small', engine, storageGiB: 10 })).toBe(plans[1])
})

test.each([
  { plan: 'huge', storageGiB: 0, says: 'unknown plan: huge; these fit: large, small' },
  { plan: 'Small', storageGiB: 0, says: 'unknown plan: Small; these fit: large, small' },
  { plan: 'other', storageGiB: 0, says: 'the plan other is not for postgresql-15.4.0; these fit: large, small' },
  {
    plan: 'small',
    storageGiB: 20,
    code: 'plan_too_small',
    says: 'the plan small has 10 GiB of storage, and the database has 20 GiB: storage only grows; these fit: large',
  },
  { plan: 'huge', storageGiB: 100, says: 'unknown plan: huge; no plan fits' },
])(
  'plan $plan for a database of $storageGiB GiB is rejected with the plans that fit',
  ({ code = 'unknown_plan', says, ...requested }) => {
    const details = [{ field: 'plan', message: says }]
    const error: unknown = expect.objectContaining({ code, message: says, details })
    expect(() => choosePlan(plans, { ...requested, engine })).toThrow(error)
  },
)

describe('the minimum storage of the next plan', () => {
  const status = (reason: string, observedGeneration: number, storageGiB: number) => ({
    ...runningStatus,
    storageGiB,
    conditions: [readyCondition(reason === 'Running' ? 'True' : 'False', reason, observedGeneration)],
  })

  test.each([
    { does: 'is that of its plan before it has a server', database: { spec: { plan: 'large' } }, floor: 50 },
    { does: 'is that of its server', database: { status: status('Running', 1, 20) }, floor: 20 },
    {
      does: 'is that of a greater plan that is being applied',
      database: { spec: { plan: 'large' }, metadata: { generation: 2 }, status: status('Running', 1, 10) },
      floor: 50,
    },
    {
      does: 'is that of its server when the storage class rejected a greater plan',
      database: { spec: { plan: 'large' }, metadata: { generation: 2 }, status: status('StorageNotExpandable', 2, 10) },
      floor: 10,
    },
    {
      does: 'is that of a greater plan requested after a rejected one',
      database: { spec: { plan: 'large' }, metadata: { generation: 3 }, status: status('StorageNotExpandable', 2, 10) },
      floor: 50,
    },
    {
      does: 'is that of its server when its plan is gone',
      database: { spec: { plan: 'gone' }, status: runningStatus },
      floor: 10,
    },
  ])('$does', ({ database, floor }) => {
    expect(storageFloor(dedicatedDatabase(database), plans)).toBe(floor)
  })
})
