import { appendFile, mkdir, mkdtemp, readFile, rm, stat, truncate } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, onTestFinished, test, vi } from 'vitest'
import { openLogFile, parseLog } from './log-file.ts'

const TITLE = 'a test'

async function place(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'mooring-log-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  return join(directory, 'file')
}

/** Log file whose live values a test sets. */
async function opened(path: string, values = new Map<string, unknown>()) {
  const warn = vi.fn()
  const file = await openLogFile({ path, title: TITLE, live: () => values, everyMs: 5, againMs: 5, log: { warn } })
  return {
    file,
    warn,
    set: (id: string, value: unknown) => {
      if (value === undefined) values.delete(id)
      else values.set(id, value)
      file.set(id, value)
    },
  }
}

test('the last value of each id is restored', async () => {
  const path = await place()
  const { set, file } = await opened(path)
  set('a', 1)
  await file.flush()
  set('a', { b: [2] })
  set('gone', 3)
  await file.flush()
  set('gone', undefined)
  await vi.waitFor(async () => expect(parseLog(await readFile(path, 'utf8'), TITLE)).toEqual(new Map([['a', { b: [2] }]])), {
    timeout: 60_000,
  })
  await file[Symbol.asyncDispose]()
  const again = await opened(path)
  expect(again.file.found).toEqual(new Map([['a', { b: [2] }]]))
  await again.file[Symbol.asyncDispose]()
})

test('the file is readable by its owner only', async () => {
  const path = await place()
  const { set, file } = await opened(path)
  set('a', 1)
  await file[Symbol.asyncDispose]()
  expect((await stat(path)).mode & 0o777).toBe(0o600)
})

test('a write that fails at disposal is not retried', async () => {
  const path = await place()
  const { set, file, warn } = await opened(path)
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  await mkdir(path)
  set('a', 1)
  await file[Symbol.asyncDispose]()
  expect(warn).toHaveBeenCalledOnce()
  expect(vi.getTimerCount()).toBe(0)
})

test('the file does not grow with outdated values', async () => {
  const path = await place()
  const { set, file } = await opened(path)
  const text = 'x'.repeat(100_000)
  for (let round = 0; round < 60; round += 1) {
    set('a', `${round} ${text}`)
    await file.flush()
  }
  expect((await stat(path)).size).toBeLessThan(2_000_000)
  await file[Symbol.asyncDispose]()
  expect(parseLog(await readFile(path, 'utf8'), TITLE).get('a')).toMatch(/^59 /)
})

test('a truncated line is skipped', async () => {
  const path = await place()
  const { set, file } = await opened(path)
  set('a', 1)
  set('b', 2)
  await file[Symbol.asyncDispose]()
  await truncate(path, (await stat(path)).size - 3)
  const again = await opened(path)
  expect(again.file.found).toEqual(new Map([['a', 1]]))
  await appendFile(path, 'rubbish\n["c"]\n[1,2]\n')
  expect(parseLog(await readFile(path, 'utf8'), TITLE)).toEqual(new Map([['a', 1]]))
  await again.file[Symbol.asyncDispose]()
})

test('a file with another title has no values', async () => {
  expect(parseLog('"another"\n["a",1]\n', TITLE)).toEqual(new Map())
})

test('a failed write is repeated when writing is possible again', async () => {
  const path = join(await place(), 'missing', 'file')
  const { set, file, warn } = await opened(path)
  set('a', 1)
  await file.flush()
  expect(warn).toHaveBeenCalled()
  await mkdir(join(path, '..'), { recursive: true })
  await vi.waitFor(async () => expect(parseLog(await readFile(path, 'utf8'), TITLE)).toEqual(new Map([['a', 1]])), {
    timeout: 60_000,
  })
  await file[Symbol.asyncDispose]()
})

test('parsing random content never throws', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.json(), fc.string()), { maxLength: 10 }), (lines) => {
      parseLog([JSON.stringify(TITLE), ...lines].join('\n'), TITLE)
    }),
  )
})
