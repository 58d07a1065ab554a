import { describe, expect, test } from 'vitest'
import { PROXY_LIMITS } from '../limits.ts'
import { Progress } from './progress.ts'

const { slowMs, slowBytes } = PROXY_LIMITS
const BEGAN = 1_795_260_159_020

describe('a reader', () => {
  const outlet = { bytesWritten: 0, writableLength: 0 }
  const watched = () => new Progress(Object.assign(outlet, { bytesWritten: 65_536, writableLength: 65_536 }), PROXY_LIMITS, BEGAN)

  test('has its time from the beginning, whenever the first check is', () => {
    const progress = watched()
    expect(progress.isReaderStuck(BEGAN + 500)).toBe(false)
    expect(progress.isReaderStuck(BEGAN + slowMs)).toBe(true)
  })

  test('that reads enough in each period is not stuck', () => {
    const progress = watched()
    for (let round = 1; round <= 5; round += 1) {
      outlet.bytesWritten += slowBytes
      expect(progress.isReaderStuck(BEGAN + round * (slowMs - 1))).toBe(false)
    }
  })

  test('without pending bytes is never stuck', () => {
    const progress = watched()
    outlet.writableLength = 0
    expect(progress.isReaderStuck(BEGAN + 10 * slowMs)).toBe(false)
    outlet.writableLength = 1
    expect(progress.isReaderStuck(BEGAN + 11 * slowMs - 1)).toBe(false)
    expect(progress.isReaderStuck(BEGAN + 11 * slowMs)).toBe(true)
  })
})

describe('a sender', () => {
  test('is stuck when too little arrives in a period in which it was not held', () => {
    const progress = new Progress({ bytesWritten: 0, writableLength: 0 }, PROXY_LIMITS, BEGAN)
    progress.restart(BEGAN)
    expect(progress.isSenderStuck(BEGAN + slowMs - 1, 0)).toBe(false)
    expect(progress.isSenderStuck(BEGAN + slowMs, slowBytes)).toBe(false)
    progress.held()
    expect(progress.isSenderStuck(BEGAN + 2 * slowMs, slowBytes)).toBe(false)
    expect(progress.isSenderStuck(BEGAN + 3 * slowMs, 2 * slowBytes - 1)).toBe(true)
  })
})
