import { expect, test } from 'vitest'
import { type AccountTexts, type ClientWith, createAccountKey } from './account-key.ts'
import { AcmeError } from './acme-error.ts'
import type { AcmeClient } from './client.ts'

const URL = 'https://ca.example/account/1'

/** CA that knows one key, and a Secret. `fail` is thrown by the change of a key, before or after it is done. */
function open(texts: Partial<AccountTexts> = {}, { known = 'old' } = {}) {
  const secret: Record<string, string> = {
    ...{ key: 'old', keyVersion: '1', nextKey: '', nextVersion: '', url: URL, email: '', pausedUntil: '0', ...texts },
  }
  const ca = { known, fail: undefined as { readonly when: 'before' | 'after'; readonly error: AcmeError } | undefined }
  let changes = 0
  const clientWith: ClientWith = (key) => {
    const client: Pick<AcmeClient, 'register' | 'changeKey'> = {
      register: () =>
        key === ca.known
          ? Promise.resolve({ data: {}, location: URL, retryAfterMs: undefined })
          : Promise.reject(new AcmeError('acme_rejected', 'no such account', { type: 'accountDoesNotExist', status: 400 })),
      changeKey: (_url, next) => {
        if (ca.fail?.when === 'before') return Promise.reject(ca.fail.error)
        ca.known = next
        return ca.fail ? Promise.reject(ca.fail.error) : Promise.resolve()
      },
    }
    return Promise.resolve(client as AcmeClient)
  }
  const write = (values: Partial<AccountTexts>) => Promise.resolve(void Object.assign(secret, values))
  const read = () => Promise.resolve({ ...secret } as unknown as AccountTexts)
  const key = createAccountKey({ name: 'account', read, write, onChange: () => void (changes += 1) })
  const used = () => key.use(clientWith, (each) => Promise.resolve(each))
  return { ca, secret, key, clientWith, used, changes: () => changes }
}

const unreachable = new AcmeError('acme_unreachable', 'no answer')
const rejected = new AcmeError('acme_rejected', 'not now', { type: 'malformed', status: 400 })

test('a higher version changes the key, an equal or lower one does not', async () => {
  const at = open()
  await at.key.change(1, at.clientWith)
  expect(at.secret.key).toBe('old')
  await at.key.change(2, at.clientWith)
  expect(at.secret).toMatchObject({ key: at.ca.known, keyVersion: '2', nextKey: '' })
  expect(at.ca.known).not.toBe('old')
  await at.key.change(1, at.clientWith)
  expect(await at.used()).toBe(at.ca.known)
  expect(at.changes()).toBe(1)
})

test.each([
  { name: 'does not answer before it has changed the key', when: 'before', error: unreachable },
  { name: 'does not answer after it has changed the key', when: 'after', error: unreachable },
  { name: 'rejects the change', when: 'before', error: rejected },
  { name: 'rejects a change that it makes all the same', when: 'after', error: rejected },
] as const)(
  'requests go on with the key that the CA knows when it $name, and the next attempt succeeds',
  async ({ when, error }) => {
    const at = open()
    at.ca.fail = { when, error }
    await expect(at.key.change(2, at.clientWith)).rejects.toBe(error)
    expect(await at.used()).toBe(at.ca.known)
    at.ca.fail = undefined
    await at.key.change(2, at.clientWith)
    expect(at.secret).toMatchObject({ key: at.ca.known, keyVersion: '2', nextKey: '' })
    expect(await at.used()).toBe(at.ca.known)
  },
)

test.each([
  { known: 'old', version: '1' },
  { known: 'new', version: '2' },
])('after a crash with two keys the one that the CA knows is used: $known', async ({ known, version }) => {
  const at = open({ nextKey: 'new', nextVersion: '2' }, { known })
  expect(await at.used()).toBe(known)
  expect(at.secret).toMatchObject({ key: known, keyVersion: version })
})

test('a change waits for the requests under way, and later requests wait for the change', async () => {
  const at = open()
  const { promise, resolve } = Promise.withResolvers<undefined>()
  const first = at.key.use(at.clientWith, async (key) => {
    await promise
    return { key, known: at.ca.known }
  })
  await at.key.use(at.clientWith, () => Promise.resolve())
  const change = at.key.change(2, at.clientWith)
  const later = at.used()
  resolve(undefined)
  expect(await first).toEqual({ key: 'old', known: 'old' })
  await change
  expect(await later).toBe(at.ca.known)
})
