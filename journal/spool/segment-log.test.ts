import { appendFileSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { faultyFiles, drain, frameOf, MOST, open, openDurable, scratch } from '../../test/support/journal/segment-logs.ts'
import { diskFiles, type Files } from './files.ts'
import { SegmentLog } from './segment-log.ts'

test('frames are taken in the order of their appends, across any closing and reopening, and no file is left', () => {
  const steps = fc.array(fc.oneof(fc.string({ maxLength: 300 }), fc.constantFrom(null, undefined)), { maxLength: 40 })
  fc.assert(
    fc.property(steps, (given) => {
      using place = scratch()
      let log = open(place.directory)
      const taken: string[] = []
      for (const [index, step] of given.entries()) {
        if (typeof step === 'string') log.append(frameOf(`${index} ${step}`), 1)
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
      const appended = given.flatMap((step, index) => (typeof step === 'string' ? [`${index} ${step}`] : []))
      // Reopening a log yields taken frames again, up to a whole file of them: shipping a record twice adds nothing.
      const first = taken.filter((text, index) => taken.indexOf(text) === index)
      expect(given.includes(null) ? first : taken).toEqual(appended)
      expect([log.records, log.bytes, readdirSync(place.directory)]).toEqual([0, 0, []])
    }),
    { numRuns: 200 },
  )
})

test.each([false, true])('a log keeps the order of its frames after it is closed and opened again (durable: %s)', (durable) => {
  using scratchDirectory = scratch()
  // Each frame fills a file: the numbers of the files reach two digits, so that an order by name would differ.
  const openSmall = () => new SegmentLog({ directory: scratchDirectory.directory, name: 'x', durable, segmentBytes: 1 })
  const texts = Array.from({ length: 24 }, (_, index) => `frame ${index}`)
  const before = openSmall()
  for (const text of texts.slice(0, 11)) before.append(frameOf(text), 1)
  before.close()
  const after = openSmall()
  for (const text of texts.slice(11)) after.append(frameOf(text), 1)
  expect(readdirSync(scratchDirectory.directory)).toHaveLength(texts.length)
  expect(drain(after)).toEqual(texts)
  after.close()
  expect(readdirSync(scratchDirectory.directory)).toEqual([])
})

test('the whole frames of a file truncated at any byte are taken, and later ones', () => {
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

test('bytes after the last frame are ignored; damage loses the rest of its file, and is reported', () => {
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

test('drop removes the oldest file with its remaining frames, and take of one of its batches changes nothing', () => {
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

test('a frame truncated by a full disk leaves no hole: the frames before and after it are taken, also after a kill', () => {
  using place = scratch()
  const files = faultyFiles()
  const log = open(place.directory, files)
  log.append(frameOf('before'), 1)
  files.room = frameOf('cut off').length - 3
  expect(() => log.append(frameOf('cut off'), 1)).toThrow('ENOSPC')
  files.room = Infinity
  log.append(frameOf('after'), 1)
  const [file = ''] = readdirSync(place.directory)
  expect(readFileSync(join(place.directory, file))).toEqual(Buffer.concat([frameOf('before'), frameOf('after')]))
  expect(drain(open(place.directory))).toEqual(['before', 'after'])
})

test('a file removed by hand blocks nothing, and its records are reported as lost', () => {
  using place = scratch()
  for (const text of ['a', 'b']) open(place.directory).append(frameOf(text), 1)
  const log = open(place.directory)
  rmSync(join(place.directory, 'x-1.log'))
  const batch = log.read(MOST)
  expect(batch?.lost).toBe(1)
  if (batch) log.take(batch)
  expect([drain(log), log.records]).toEqual([['b'], 0])
})

test('a truncated frame that cannot be removed is the last one of its file', () => {
  using place = scratch()
  const files = faultyFiles()
  const log = open(place.directory, files)
  log.append(frameOf('before'), 1)
  files.room = 5
  files.failing.set('truncate', 'EIO')
  expect(() => log.append(frameOf('torn'), 1)).toThrow('ENOSPC')
  files.room = Infinity
  log.append(frameOf('after'), 1)
  expect(drain(open(place.directory))).toEqual(['before', 'after'])
})

test('a file whose creation failed is removed, at the latest when the disk works again', () => {
  using place = scratch()
  const files = faultyFiles()
  const log = openDurable(place.directory, files)
  files.failing.set('syncDirectory', 'EIO')
  for (let tries = 0; tries < 3; tries += 1) expect(() => log.append(frameOf('a'), 1)).toThrow('syncDirectory')
  expect(readdirSync(place.directory)).toEqual([])
  files.failing.set('remove', 'EIO')
  expect(() => log.append(frameOf('a'), 1)).toThrow('syncDirectory')
  expect(readdirSync(place.directory)).toHaveLength(1)
  files.failing.clear()
  log.append(frameOf('a'), 1)
  expect([drain(log), readdirSync(place.directory).length]).toEqual([['a'], 1])
})

test('a short read is continued', () => {
  using place = scratch()
  const files: Files = { ...diskFiles, read: (fd, offset, length) => diskFiles.read(fd, offset, Math.min(length, 3)) }
  const texts = ['one', 'two', 'x'.repeat(1_000)]
  for (const text of texts) open(place.directory).append(frameOf(text), 1)
  expect(drain(open(place.directory, files))).toEqual(texts)
})

test('a damaged rest of the current file is skipped, and later frames are taken', () => {
  using place = scratch()
  const log = open(place.directory)
  for (const text of ['one', 'two', 'three']) log.append(frameOf(text), 1)
  const [file = ''] = readdirSync(place.directory)
  const path = join(place.directory, file)
  writeFileSync(path, readFileSync(path).fill('X', frameOf('one').length))
  const whole = log.read(MOST)
  if (whole) log.take(whole)
  const rest = log.read(MOST)
  expect([whole?.records, rest?.lost]).toEqual([1, 2])
  if (rest) log.take(rest)
  expect(log.records).toBe(0)
  log.append(frameOf('four'), 1)
  expect([log.records, drain(log), log.records]).toEqual([1, ['four'], 0])
})

test('with failures at any step exactly the appended frames are taken, in order', async () => {
  const calls = ['append', 'create', 'truncate', 'openToRead', 'read', 'remove', 'sync', 'syncAside', 'syncDirectory'] as const
  const step = fc.record({
    does: fc.constantFrom('append', 'append', 'append', 'take', 'sync', 'reopen'),
    size: fc.constantFrom(10, 10, 300),
    fails: fc.option(fc.constantFrom(...calls), { nil: undefined }),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      using place = scratch()
      const files = faultyFiles()
      const openSmall = () => new SegmentLog({ directory: place.directory, name: 'x', durable: true, files, segmentBytes: 400 })
      let log = openSmall()
      const [added, taken]: [string[], string[]] = [[], []]
      const acts = {
        append: (size: number, text: string) => {
          log.append(frameOf(text.padEnd(size)), 1)
          added.push(text)
        },
        take: () => {
          const batch = log.read(MOST)
          if (!batch) return
          taken.push(...batch.frames.map(({ payload }) => payload.toString().trimEnd()))
          log.take(batch)
        },
        sync: () => log.sync(),
        reopen: () => {
          log.close()
        },
      }
      for (const [index, { does, size, fails }] of steps.entries()) {
        if (fails !== undefined) files.failing.set(fails, 'EIO')
        const act: (size: number, text: string) => void | Promise<void> = acts[does]
        await (async () => act(size, `text ${index}`))().catch((error: unknown) => {
          expect(error).toMatchObject({ code: 'EIO' })
        })
        files.failing.clear()
        if (does === 'reopen') log = openSmall()
      }
      taken.push(...drain(log).map((text) => text.trimEnd()))
      // Duplicates are harmless: the records have ids.
      const first = taken.filter((text, index) => taken.indexOf(text) === index)
      expect(first).toEqual(added)
      log.close()
      expect([log.records, log.bytes, readdirSync(place.directory)]).toEqual([0, 0, []])
    }),
    { numRuns: 200 },
  )
})
