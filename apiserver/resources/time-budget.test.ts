import { expect, test } from 'vitest'
import { withinBudget } from './time-budget.ts'

const untilAborted = (signal: AbortSignal) =>
  new Promise<object>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error))
  })

test('withinBudget returns a result that is in time', async () => {
  expect(await withinBudget(60_000, () => Promise.resolve({ done: true }))).toEqual({ done: true })
})

test('withinBudget returns undefined when the time runs out', async () => {
  expect(await withinBudget(1, untilAborted)).toBeUndefined()
})

test('withinBudget throws the error of the wait', async () => {
  await expect(withinBudget(60_000, () => Promise.reject(new Error('mine')))).rejects.toThrow('mine')
})
