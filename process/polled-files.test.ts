import { pino } from 'pino'
import { expect, test } from 'vitest'
import { pollFiles } from './polled-files.ts'

const HOUR_MS = 3_600_000
const log = pino({ level: 'silent' })
const says = { changed: 'the files have changed', failed: 'the files cannot be read' }

test('a poll reports changed content only, and keeps it while the files are not readable', async () => {
  let content: { readonly key: string } | undefined = { key: 'a' }
  const read = async () => {
    if (!content) throw new Error('no files')
    return { ...content }
  }
  using files = await pollFiles({ read, says, log, everyMs: HOUR_MS })
  const seen: string[] = []
  files.onChange(({ key }) => seen.push(key))
  await files.poll()
  expect(seen).toEqual([])
  content = { key: 'b' }
  await files.poll()
  expect([seen, files.current()]).toEqual([['b'], { key: 'b' }])
  content = undefined
  await files.poll()
  expect([seen, files.current()]).toEqual([['b'], { key: 'b' }])
})

test('pollFiles rejects when the first read fails', async () => {
  const failed = pollFiles({ read: () => Promise.reject(new Error('no files')), says, log })
  await expect(failed).rejects.toThrow('no files')
})
