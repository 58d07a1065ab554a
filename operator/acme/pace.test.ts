import { expect, test } from 'vitest'
import { createPace } from './pace.ts'

function start() {
  const clock = { now: 1_000_000 }
  return { clock, pace: createPace({ everyMs: 200, now: () => clock.now }) }
}

test('tasks that come together start one after the other, each at its own time', () => {
  const { clock, pace } = start()
  const tasks = ['a', 'b', 'c']
  expect(tasks.map((task) => pace.waitMs(task))).toEqual([0, 200, 400])
  clock.now += 150
  expect(tasks.map((task) => pace.waitMs(task))).toEqual([-150, 50, 250])
})

test('a task that comes later starts at once', () => {
  const { clock, pace } = start()
  pace.waitMs('a')
  pace.leave('a')
  clock.now += 200
  expect(pace.waitMs('b')).toBe(0)
})

test('a task that has left takes another turn', () => {
  const { pace } = start()
  pace.waitMs('a')
  pace.leave('a')
  expect(pace.waitMs('a')).toBe(200)
})

test('a clock that is set back by a year delays nothing by more than the tasks before it', () => {
  const { clock, pace } = start()
  const tasks = ['a', 'b', 'c']
  for (const task of tasks) pace.waitMs(task)
  clock.now -= 365 * 86_400_000
  expect(tasks.map((task) => pace.waitMs(task))).toEqual([0, 200, 400])
})
