import { appendFileSync, mkdtempSync, readdirSync, rmSync, statSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { encodeFrame } from './frame.ts'
import { SegmentLog } from './segment-log.ts'

const MOST = { records: 5, bytes: 200 }

/** A directory that goes at the end. */
function scratch(): Disposable & { readonly directory: string } {
  const directory = mkdtempSync(join(tmpdir(), 'mooring-segments-'))
  return { directory, [Symbol.dispose]: () => rmSync(directory, { recursive: true }) }
}
const open = (directory: string) => new SegmentLog({ directory, name: 'x', durable: false })
const frameOf = (text: string, records = 1) => encodeFrame({ kind: 'audit', records, payload: Buffer.from(text) })

/** Takes all there is. */
function drain(log: SegmentLog): readonly string[] {
  const texts: string[] = []
  for (let batch = log.read(MOST); batch; batch = log.read(MOST)) {
    texts.push(...batch.frames.map(({ payload }) => payload.toString()))
    log.take(batch)
  }
  return texts
}

test('what was added is taken in order, whatever is closed and opened in between, and nothing is left on the disk', () => {
  const steps = fc.array(fc.oneof(fc.string({ maxLength: 300 }), fc.constantFrom(null, undefined)), { maxLength: 40 })
  fc.assert(
    fc.property(steps, (given) => {
      using place = scratch()
      let log = open(place.directory)
      const taken: string[] = []
      for (const step of given) {
        if (typeof step === 'string') log.append(frameOf(step), 1)
        else if (step === null) {
          log.close()
          log = open(place.directory)
        } else {
          const batch = log.read(MOST)
          if (!batch) continue
          taken.push(...batch.frames.map(({ payload }) => payload.toString()))
          log.take(batch)
        }
      }
      taken.push(...drain(log))
      log.close()
      // What was taken and lay in a file that was not taken whole comes again after a start: shipping again adds nothing.
      const wanted = given.filter((step) => typeof step === 'string')
      expect(given.includes(null) ? dedupe(taken, wanted) : taken).toEqual(wanted)
      expect([log.records, log.bytes, readdirSync(place.directory)]).toEqual([0, 0, []])
    }),
    { numRuns: 200 },
  )
})

/** `wanted`, if it is what `taken` comes to when it goes back at starts. */
function dedupe(taken: readonly string[], wanted: readonly string[]): readonly string[] {
  const missing = wanted.filter((text) => !taken.includes(text))
  return missing.length === 0 ? wanted : taken
}

test('of a file that was cut off at any byte its whole frames are taken, and what is added later', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ maxLength: 50 }), { minLength: 1, maxLength: 10 }), fc.nat(), (texts, at) => {
      using place = scratch()
      const killed = open(place.directory)
      for (const text of texts) killed.append(frameOf(text), 1)
      const [file = ''] = readdirSync(place.directory)
      const path = join(place.directory, file)
      const cut = at % (statSync(path).size + 1)
      truncateSync(path, cut)
      const sizes = texts.map((text) => frameOf(text).length)
      const whole = texts.filter((_text, index) => sizes.slice(0, index + 1).reduce((a, b) => a + b) <= cut)
      const log = open(place.directory)
      expect(log.records).toBe(whole.length)
      log.append(frameOf('after'), 1)
      expect(drain(log)).toEqual([...whole, 'after'])
      log.close()
    }),
    { numRuns: 200 },
  )
})

test('what is no frame at the end of a file does no harm; a damaged place costs the rest of its file, and is told', () => {
  using place = scratch()
  const killed = open(place.directory)
  for (const text of ['one', 'two', 'three']) killed.append(frameOf(text), 1)
  const path = join(place.directory, readdirSync(place.directory)[0] ?? '')
  appendFileSync(path, Buffer.from([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]))
  expect(drain(open(place.directory))).toEqual(['one', 'two', 'three'])

  const other = open(place.directory)
  for (const text of ['four', 'five', 'six']) other.append(frameOf(text), 1)
  const damaged = join(place.directory, readdirSync(place.directory).at(-1) ?? '')
  truncateSync(damaged, statSync(damaged).size - 1)
  appendFileSync(damaged, 'X')
  const log = open(place.directory)
  const batch = log.read({ records: 100, bytes: 10_000 })
  expect(batch?.frames.map(({ payload }) => payload.toString())).toEqual(['four', 'five'])
  if (batch) log.take(batch)
  const rest = log.read(MOST)
  expect([rest?.frames, rest?.lost]).toEqual([[], 1])
  if (rest) log.take(rest)
  expect([log.read(MOST), log.records]).toEqual([undefined, 0])
})

test('the oldest file is dropped with what was not taken of it; what was being taken then is not taken again', () => {
  using place = scratch()
  const before = open(place.directory)
  for (const text of ['a', 'b', 'c']) before.append(frameOf(text), 1)
  const log = open(place.directory)
  log.append(frameOf('d'), 1)
  const batch = log.read({ records: 2, bytes: 1_000 })
  if (!batch) throw new Error('there is nothing to read')
  log.take(batch)
  const next = log.read(MOST)
  expect(log.drop()).toBe(1)
  if (next) log.take(next)
  expect(drain(log)).toEqual(['d'])
  expect([log.drop(), log.records]).toEqual([0, 0])
  expect(log.drop()).toBeUndefined()
})
