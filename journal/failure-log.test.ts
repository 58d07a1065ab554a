import { expect, test } from 'vitest'
import { createDiskHealth } from './failure-log.ts'

function healthAt() {
  const lines: string[] = []
  let time = 0
  const log = { warn: () => void lines.push(`fails at ${time}`), info: () => void lines.push(`works at ${time}`) }
  const health = createDiskHealth({ directory: '/spool', log, now: () => time })
  return { health, lines, at: (seconds: number) => (time = seconds * 1_000) }
}

test('the disk is failing while any task fails, and that is logged once', () => {
  const { health, lines } = healthAt()
  for (let tries = 0; tries < 10; tries += 1) health.failed('write', new Error('EIO'))
  health.failed('sync', new Error('EIO'))
  health.succeeded('write')
  expect(health.failing).toBe(true)
  health.succeeded('sync')
  health.succeeded('sync')
  expect([health.failing, lines]).toEqual([false, ['fails at 0', 'works at 0']])
})

test('a disk that fails every other second is logged once a minute', () => {
  const { health, lines, at } = healthAt()
  for (let second = 0; second < 180; second += 2) {
    at(second)
    health.failed('write', new Error('EIO'))
    at(second + 1)
    health.succeeded('write')
  }
  expect(lines).toEqual([0, 60, 120].flatMap((second) => [`fails at ${second * 1_000}`, `works at ${second * 1_000 + 1_000}`]))
})
