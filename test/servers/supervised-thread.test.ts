import { rm, writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { openTemporaryJournal, silent } from '../support/journal/temporary-journal.ts'
import { superviseThread } from '../../journal/supervised-thread.ts'
import { LATER, patient } from '../support/patience.ts'

const program = new URL('../support/journal/mortal-worker.ts', import.meta.url)
interface Message {
  readonly type: string
}

test('a crashed thread rejects its questions, and is restarted as soon as possible', async () => {
  await using place = await openTemporaryJournal()
  const path = `${place.path}-blocked`
  const thread = await superviseThread<Message, Message>({ program, path, log: silent })
  expect(await thread.ask({ type: 'hello' })).toEqual({ type: 'hello' })
  await expect(thread.ask({ type: 'fail' })).rejects.toMatchObject({ code: 'unavailable', again: true })
  await writeFile(path, '')
  const asked = [thread.ask({ type: 'die' }), thread.ask({ type: 'hello' })]
  for (const { status } of await Promise.allSettled(asked)) expect(status).toBe('rejected')
  await expect(thread.ask({ type: 'hello' })).rejects.toMatchObject({ code: 'unavailable', again: true })
  await rm(path)
  await expect.poll(() => thread.ask({ type: 'hello' }).catch(() => undefined), LATER).toEqual({ type: 'hello' })
  await thread.close({ type: 'close' })
})

test('the error of a failed first start has its reason', async () => {
  await using place = await openTemporaryJournal()
  await expect(superviseThread({ program, path: place.path, log: silent })).rejects.toMatchObject({ message: 'not now' })
})

test('a thread that keeps crashing is restarted with growing delays, and logged rarely', async () => {
  await using place = await openTemporaryJournal()
  const waits: number[] = []
  let lines = 0
  const thread = await superviseThread<Message, Message>({
    program,
    path: `${place.path}-blocked`,
    log: { warn: () => (lines += 1) },
    pause: (ms) => Promise.resolve(void waits.push(ms)),
  })
  const dies = async () => {
    await thread.ask({ type: 'die' }).catch((error: unknown) => error)
    return waits.length
  }
  await expect.poll(dies, { timeout: patient(20_000), interval: 1 }).toBeGreaterThanOrEqual(8)
  expect(waits[0]).toBeLessThanOrEqual(250)
  expect(waits[7]).toBeGreaterThanOrEqual(7_500)
  expect(Math.max(...waits)).toBeLessThanOrEqual(15_000)
  expect(lines).toBe(1)
  await expect.poll(() => thread.ask({ type: 'hello' }).catch(() => undefined)).toEqual({ type: 'hello' })
  await thread.close({ type: 'close' })
})

test('an error of the file system is retryable', async () => {
  await using place = await openTemporaryJournal()
  const thread = await superviseThread<Message, Message>({ program, path: `${place.path}-blocked`, log: silent })
  await expect(thread.ask({ type: 'read' })).rejects.toMatchObject({ code: 'unavailable', again: true })
  await thread.close({ type: 'close' })
})
