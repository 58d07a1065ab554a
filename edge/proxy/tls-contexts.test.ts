import { createSecureContext, type SecureContext } from 'node:tls'
import { expect, test } from 'vitest'
import { createContexts } from './tls-contexts.ts'

function contexts(size = 2) {
  const asked: string[] = []
  const known: Record<string, SecureContext> = {}
  const kept = createContexts({
    size,
    contextFor: async (name) => {
      asked.push(name)
      if (name === 'broken') throw new Error('the key is not one')
      return known[name]
    },
  })
  const find = (name: string) =>
    new Promise<SecureContext | undefined>((resolve, reject) =>
      kept.find(name, (error, context) => (error ? reject(error) : resolve(context))),
    )
  return { asked, known, find, forget: (name: string) => kept.forget(name) }
}

test('a context is asked for once, also by handshakes that come together', async () => {
  const { asked, known, find } = contexts()
  const context = (known.a = createSecureContext())
  expect(await Promise.all([find('a'), find('a')])).toEqual([context, context])
  await find('a')
  expect(asked).toEqual(['a'])
})

test('those used last are kept', async () => {
  const { asked, known, find } = contexts(2)
  for (const name of ['a', 'b', 'c']) known[name] = createSecureContext()
  for (const name of ['a', 'b', 'a', 'c', 'a', 'b']) await find(name)
  expect(asked).toEqual(['a', 'b', 'c', 'b'])
})

test('one that was forgotten is asked for anew, even while it was being asked for', async () => {
  const { known, find, forget } = contexts()
  known.a = createSecureContext()
  const asking = find('a')
  forget('a')
  await asking
  const renewed = (known.a = createSecureContext())
  expect(await find('a')).toBe(renewed)
})

test('a broken one: the handshake fails, and the next one asks again', async () => {
  const { asked, find } = contexts()
  await expect(find('broken')).rejects.toThrow()
  await expect(find('broken')).rejects.toThrow()
  expect(asked).toEqual(['broken', 'broken'])
})

test('a name without a context is left to the server, and asked for again', async () => {
  const { asked, find } = contexts()
  expect([await find('unknown'), await find('unknown')]).toEqual([undefined, undefined])
  expect(asked).toEqual(['unknown', 'unknown'])
})
