import { Writable } from 'node:stream'
import { expect, test, describe } from 'vitest'
import { Writes, Progress } from './visitor.ts'
import { PROXY_LIMITS } from './limits.ts'

/** Visitor that reads when the test requests it. */
function visitor() {
  const taken: Buffer[] = []
  const waiting: (() => void)[] = []
  const stream = new Writable({
    highWaterMark: 64 * 1024,
    write(chunk: Buffer, _encoding, done) {
      taken.push(chunk)
      waiting.push(done)
    },
  })
  return { stream, taken, read: () => waiting.splice(0).forEach((done) => done()) }
}

test('responses that begin in one turn are sent together at its end, each before its continuation', async () => {
  const visitors = [visitor(), visitor(), visitor()]
  const seen = () => visitors.map(({ taken }) => Buffer.concat(taken).toString())
  const [first, second, third] = visitors.map(({ stream }) => new Writes(stream, () => undefined))
  expect([first?.begin(Buffer.from('a')), second?.begin(Buffer.from('b')), third?.begin(Buffer.from('c'))]).toEqual([
    true,
    true,
    true,
  ])
  expect(seen()).toEqual(['', '', ''])
  second?.write(Buffer.from('-'))
  third?.send()
  expect(seen()).toEqual(['', 'b', 'c'])
  await Promise.resolve()
  visitors[1]?.read()
  expect(seen()).toEqual(['a', 'b-', 'c'])
  // A visitor that has not read the former response gets the next one in its turn.
  first?.begin(Buffer.from('d'))
  visitors[0]?.read()
  await Promise.resolve()
  expect(seen()).toEqual(['ad', 'b-', 'c'])
})

test('a visitor that does not read gets a bounded number of writes, however small they are', async () => {
  const { stream, taken, read } = visitor()
  let drained = 0
  const writes = new Writes(stream, () => (drained += 1))
  // Each is a part of a much larger buffer.
  const byte = () => Buffer.alloc(64 * 1024, 'x').subarray(0, 1)
  let written = 1
  while (writes.write(byte())) written += 1
  expect(written).toBe(65)
  expect(drained).toBe(0)

  while (stream.writableLength > 0) {
    read()
    await new Promise(setImmediate)
  }
  expect(drained).toBe(1)
  expect(Buffer.concat(taken).toString()).toBe('x'.repeat(65))
  expect(taken.slice(1).every(({ buffer }) => buffer.byteLength === 1)).toBe(true)
  expect(writes.write(byte())).toBe(true)
})

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
