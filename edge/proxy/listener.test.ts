import { createSecureContext, type SecureContext } from 'node:tls'
import { expect, test } from 'vitest'
import { createContexts } from './listener.ts'

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

test('simultaneous handshakes request a context once', async () => {
  const { asked, known, find } = contexts()
  const context = (known.a = createSecureContext())
  expect(await Promise.all([find('a'), find('a')])).toEqual([context, context])
  await find('a')
  expect(asked).toEqual(['a'])
})

test('the cache keeps the contexts used last', async () => {
  const { asked, known, find } = contexts(2)
  for (const name of ['a', 'b', 'c']) known[name] = createSecureContext()
  for (const name of ['a', 'b', 'a', 'c', 'a', 'b']) await find(name)
  expect(asked).toEqual(['a', 'b', 'c', 'b'])
})

test('a forgotten context is requested again, also during a request', async () => {
  const { known, find, forget } = contexts()
  known.a = createSecureContext()
  const asking = find('a')
  forget('a')
  await asking
  const renewed = (known.a = createSecureContext())
  expect(await find('a')).toBe(renewed)
})

test('a failed request fails the handshake, and the next handshake requests again', async () => {
  const { asked, find } = contexts()
  await expect(find('broken')).rejects.toThrow()
  await expect(find('broken')).rejects.toThrow()
  expect(asked).toEqual(['broken', 'broken'])
})

test('a name without a context gets the default one, and is requested again', async () => {
  const { asked, find } = contexts()
  expect([await find('unknown'), await find('unknown')]).toEqual([undefined, undefined])
  expect(asked).toEqual(['unknown', 'unknown'])
})
