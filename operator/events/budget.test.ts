import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type BudgetLimits, createBudget } from './budget.ts'

const LIMITS: BudgetLimits = {
  perObject: { burst: 2, refillMs: 1_000 },
  overall: { burst: 5, refillMs: 100 },
  objects: 3,
}

test('an object has its burst, and then one for each refill', () => {
  const mayWrite = createBudget(LIMITS)
  expect([0, 0, 0, 500, 1_000, 1_000].map((now) => mayWrite('a', now))).toEqual([true, true, false, false, true, false])
})

test('an object with many events does not use up the budget of others', () => {
  const mayWrite = createBudget(LIMITS)
  for (let i = 0; i < 100; i++) mayWrite('loud', 0)
  expect(mayWrite('quiet', 0)).toBe(true)
})

test('all objects together have a budget', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(20), fc.nat(50)), { maxLength: 300 }), (calls) => {
      const mayWrite = createBudget(LIMITS)
      let now = 0
      let written = 0
      for (const [object, step] of calls) {
        now += step
        if (mayWrite(`${object}`, now)) written += 1
      }
      expect(written).toBeLessThanOrEqual(LIMITS.overall.burst + now / LIMITS.overall.refillMs)
    }),
  )
})
