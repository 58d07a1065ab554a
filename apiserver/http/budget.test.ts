import { expect, test } from 'vitest'
import { withinBudget } from './budget.ts'

const untilAborted = (signal: AbortSignal) =>
  new Promise<object>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error))
  })

test('what comes in time is returned', async () => {
  expect(await withinBudget(60_000, () => Promise.resolve({ done: true }))).toEqual({ done: true })
})

test('what does not come in time is undefined', async () => {
  expect(await withinBudget(1, untilAborted)).toBeUndefined()
})

test('an error of what is waited for passes through', async () => {
  await expect(withinBudget(60_000, () => Promise.reject(new Error('mine')))).rejects.toThrow('mine')
})
