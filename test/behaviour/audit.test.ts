import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openHome } from '../support/home.ts'
import { succeed, type Tenant } from '../support/tenant.ts'

/** The audit log has what is done to databases and API tokens, too. */

const home = openHome()
let acme: Tenant
beforeAll(async () => {
  acme = await home.namespace()
})
afterAll(() => home[Symbol.asyncDispose]())

/** The entries of a resource, newest first, once there are as many. */
async function entriesOf(id: string, kind: string, count: number) {
  return vi.waitFor(
    async () => {
      const { text, body } = await read(`${acme.path}/audit?kind=${kind}&id=${id}`)
      expect(body.data.entries).toHaveLength(count)
      return { text, entries: body.data.entries }
    },
    { timeout: 20_000, interval: 200 },
  )
}

async function read(path: string) {
  const { body } = await succeed(acme.as('viewer')('GET', path))
  return { body, text: JSON.stringify(body) }
}

test('a database: who made, changed, rotated, emptied and deleted it, and never a password', async () => {
  const instance = await acme.instance({ identifier: 'orders' })
  const { id } = instance
  const editor = (method: string, path = '', body?: object) =>
    succeed(acme.as('editor')(method, `/v1/instances/${id}${path}`, body && { body }))
  await editor('PATCH', '', { identifier: 'shop' })
  const rotated = (await editor('POST', '/password')).body.data.instance
  await editor('POST', '/reset')
  await editor('DELETE')
  const { entries, text } = await entriesOf(id, 'SharedInstance', 5)
  expect(entries).toMatchObject([
    { action: 'delete', via: 'rest', resource: { kind: 'SharedInstance', id, name: 'shop' } },
    { action: 'update', changes: [{ path: 'spec.resetVersion', from: 0, to: 1 }] },
    { action: 'update', changes: [{ path: 'spec.passwordVersion', from: 1, to: 2 }] },
    { action: 'update', changes: [{ path: 'spec.identifier', from: 'orders', to: 'shop' }] },
    { action: 'create', via: 'rest', resource: { id, name: 'orders' }, changes: [{ path: 'spec', from: null }] },
  ])
  for (const { actor } of entries) expect(actor?.name).toContain(':editor-')
  for (const secret of [instance.password, rotated.password]) expect(text).not.toContain(secret)
})

test('an API token: who made and revoked it, and neither the token nor its hash', async () => {
  const body = { name: 'ci', role: 'viewer' }
  const { apiToken } = (await succeed(acme.as('admin')('POST', `${acme.path}/api-tokens`, { body }))).body.data
  await succeed(acme.as('admin')('DELETE', `${acme.path}/api-tokens/${apiToken.id}`))
  const { entries, text } = await entriesOf(apiToken.id, 'ApiToken', 2)
  const resource = { kind: 'ApiToken', name: 'ci' }
  expect(entries).toMatchObject([
    { action: 'delete', via: 'rest', resource },
    { action: 'create', via: 'rest', resource },
  ])
  for (const { actor } of entries) expect(actor?.name).toContain(':admin-')
  expect(text).not.toContain(apiToken.token)
  expect(text).not.toContain('sha256')
})
