import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Namespace } from '../../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { createEmbeddedStore } from '../../store/embedded.ts'
import { StoreError } from '../../store/port.ts'
import { BEHIND_MS, createSignedOut, superfluous } from './signed-out.ts'

const END_S = 43_200

test('a session that signs out is known at once here, and after two seconds on another replica and after a restart', async () => {
  await using directory = await mkdtempDisposable(join(tmpdir(), 'signed-out-'))
  await using store = await createEmbeddedStore({ path: join(directory.path, 'state.db') })
  await store.create(Namespace, { metadata: { name: SYSTEM_NAMESPACE } })
  let now = 0
  const deps = { store, now: () => new Date(now) }
  const [here, there] = [createSignedOut(deps), createSignedOut(deps)]
  expect([await here.has('a'), await there.has('a')]).toEqual([false, false])
  await here.add('a', END_S)
  await here.add('b', END_S)
  expect(await here.has('a')).toBe(true)
  now += BEHIND_MS
  expect(await Promise.all([there.has('a'), there.has('b'), there.has('c')])).toEqual([true, true, false])
  expect(await createSignedOut(deps).has('a')).toBe(true)
})

test('the last known list is used while the store is unavailable', async () => {
  let now = 0
  let isAway = true
  const store = {
    get: async () => {
      if (isAway) throw new StoreError('unavailable', 'away')
      return undefined
    },
    create: () => expect.fail('nothing is written'),
    mergePatch: () => expect.fail('nothing is written'),
  }
  const signedOut = createSignedOut({ store, now: () => new Date(now) })
  await expect(signedOut.has('a')).rejects.toMatchObject({ code: 'unavailable' })
  isAway = false
  expect(await signedOut.has('a')).toBe(false)
  isAway = true
  now += BEHIND_MS
  expect(await signedOut.has('a')).toBe(false)
})

test('the list drops expired sessions, and above 5,000 those that expire first', () => {
  expect(superfluous({ old: '10', live: '20' }, 10)).toEqual(['old'])
  const many = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`s${index}`, String(9_000 - index)]))
  expect(superfluous(many, 0)).toEqual(['s4999'])
})
