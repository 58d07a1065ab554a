import { once } from 'node:events'
import type { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { Namespace } from '../../crds/core.ts'
import { createEmbeddedStore } from '../embedded.ts'
import { temporaryDir } from '../../test/support/store/temporary-store.ts'

const namespace = (name: string) => ({ metadata: { name } })

test('a store whose writer thread exits reports it, keeps reading, and unlocks the file', async () => {
  await using dir = await temporaryDir()
  const spawned = once(process, 'worker') as Promise<[Worker]>
  {
    await using store = await createEmbeddedStore(dir)
    const [thread] = await spawned
    await store.create(Namespace, namespace('kept'))
    const writing = store.create(Namespace, namespace('in-flight'))
    await Promise.all([thread.terminate(), expect(writing).rejects.toMatchObject({ code: 'unavailable' })])
    const reason = await store.ended
    expect(reason).toMatchObject({
      code: 'unavailable',
      message: `the state in ${dir.path} cannot be written: its thread has ended`,
    })
    await expect(store.create(Namespace, namespace('late'))).rejects.toMatchObject({ code: 'unavailable' })
    expect((await store.list(Namespace)).items).toHaveLength(1)
  }
  await using next = await createEmbeddedStore(dir)
  expect(await next.get(Namespace, { name: 'kept' })).toBeDefined()
})

test('a closed store ends without an error', async () => {
  await using dir = await temporaryDir()
  const store = await createEmbeddedStore(dir)
  await store.close()
  expect(await store.ended).toBeUndefined()
})
