import { rm, writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { openTemporaryJournal, silent } from '../sqlite/open-temporary.ts'
import { superviseThread } from './supervised-thread.ts'

const program = new URL('mortal-worker.ts', import.meta.url)
interface Message {
  readonly type: string
}

test('a thread that dies fails what it was asked and is started anew, as soon as that is possible', async () => {
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
  await expect.poll(() => thread.ask({ type: 'hello' }).catch(() => undefined), { timeout: 10_000 }).toEqual({ type: 'hello' })
  await thread.close({ type: 'close' })
})

test('a thread that cannot begin at first says why', async () => {
  await using place = await openTemporaryJournal()
  await expect(superviseThread({ program, path: place.path, log: silent })).rejects.toMatchObject({ message: 'not now' })
})
