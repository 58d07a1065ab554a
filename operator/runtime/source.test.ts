import { expect, test } from 'vitest'
import { Region } from '../../crds/region.ts'
import { createCache } from '../../store/cache.ts'
import { openTemporaryStore } from '../../test/support/store/temporary-store.ts'
import type { Key } from '../../store/port.ts'
import { aspectChangesOf, specOf } from './source.ts'

const spec = { id: '0d6f6f1f-6f0b-4b8e-9c39-5f0c1f6e8a01', regionId: 1, name: 'Here', motors: [] }

test('a change of the spec, a creation and a deletion wake the controller; a change of the status does not', async () => {
  await using temporary = await openTemporaryStore()
  const { store } = temporary
  await store.create(Region, { metadata: { name: 'before' }, spec })
  const cache = createCache({ store, kind: Region })
  const stopping = new AbortController()
  const running = cache.run(stopping.signal)
  await cache.synced()
  const woken: string[] = []
  const unsubscribe = aspectChangesOf(cache, specOf, ({ name }: Key) => [{ name }]).subscribe(({ name }) => woken.push(name))
  const conditions = (reason: string) => [
    {
      type: 'Ready',
      status: 'True' as const,
      reason,
      message: '',
      observedGeneration: 1,
      lastTransitionTime: new Date().toISOString(),
    },
  ]

  for (const reason of ['One', 'Two']) await store.patchStatus(Region, { name: 'before' }, { conditions: conditions(reason) })
  await store.create(Region, { metadata: { name: 'after' }, spec: { ...spec, regionId: 2 } })
  await expect.poll(() => woken).toEqual(['after'])
  await store.mergePatch(Region, { name: 'before' }, { spec: { name: 'There' } })
  await store.delete(Region, { name: 'after' })
  await expect.poll(() => woken).toEqual(['after', 'before', 'after'])

  unsubscribe()
  stopping.abort()
  await running
})
