import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { Namespace } from '../../../crds/core.ts'
import type { Kind } from '../../../crds/kind.ts'
import { FINALIZER } from '../../../crds/names.ts'
import { Region } from '../../../crds/region.ts'
import { Tunnel } from '../../../crds/tunnel.ts'
import { TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import { TunnelPassword } from '../../../crds/tunnel-password.ts'
import { openTemporaryJournal } from '../../../test/support/journal/temporary-journal.ts'
import type { Key, Store } from '../../../store/port.ts'
import { codeOf, serveRoutes, type ToyApp } from '../../../test/support/api/http-app.ts'
import { serveAcme, openTunnelDeps } from '../../../test/support/api/tenancy-app.ts'
import type { TunnelDeps } from '../tunnel-deps.ts'
import { createTunnel } from './create-tunnel.ts'
import { createTunnelPassword } from './passwords.ts'

/** Creations while the owner of the new object is being deleted: the request must not wait for an object that never comes. */

const PATH = '/v1/organizations/acme/namespaces/prod/tunnels'
const REGION = '0b7fdd3c-6c3e-4b6c-9d0e-4f0b7f5d3c11'
const soon = () => AbortSignal.timeout(60_000)

const opened = new AsyncDisposableStack()
let store: Store
let deps: TunnelDeps
let app: ToyApp
/** Runs once between a creation and its answer. */
let meanwhile: (created: Key) => Promise<void> = async () => undefined

beforeAll(async () => {
  const acme = opened.use(await serveAcme())
  const { journal } = opened.use(await openTemporaryJournal())
  ;({ store } = acme)
  await store.create(Region, { metadata: { name: 'r1' }, spec: { id: REGION, regionId: 1, name: 'r1', motors: [] } })
  const spec = { region: REGION, domain: 'r1.example', sshHost: 'r1.example' }
  await store.create(TunnelEndpoint, { metadata: { name: 'r1' }, spec })
  const audit = { record: async () => undefined }
  const interrupted: Store = {
    ...store,
    async create(kind, draft) {
      const made = await store.create(kind, draft)
      const next = meanwhile
      meanwhile = async () => undefined
      await next(made.metadata)
      return made
    },
  }
  deps = await openTunnelDeps(opened, { store: interrupted, scopes: acme.scopes, journal, audit })
  app = opened.use(await serveRoutes([createTunnel(deps), createTunnelPassword(deps)]))
})
afterAll(() => opened.disposeAsync())

const known = (key: Key) => deps.tunnels.waitFor(key, (found) => found, soon())
/** Deletes an object and removes its finalizers, as the operator does. */
async function take(kind: Kind, key: Key): Promise<void> {
  await store.delete(kind, key)
  const left = await store.get(kind, key)
  if (left) await store.replace(kind, { ...left, metadata: { ...left.metadata, finalizers: [] } })
}

test.each([
  { does: 'gone', finalizers: [] },
  { does: 'being deleted', finalizers: [FINALIZER] },
])('a password of a tunnel that is $does meanwhile is 409 conflict at once', async ({ finalizers }) => {
  const key = { name: `web-${finalizers.length}`, namespace: 'acme--prod' }
  const tunnel = await store.create(Tunnel, { metadata: { ...key, finalizers }, spec: { regionId: 1, config: {} } })
  await known(key)
  meanwhile = async (password) => {
    await store.delete(Tunnel, key)
    // The password may already be deleted with its tunnel.
    await store.delete(TunnelPassword, password).catch(() => undefined)
    const isGone = () => (deps.tunnelPasswords.get(password) === undefined ? true : undefined)
    await deps.tunnelPasswords.waitFor(password, isGone, soon())
  }
  const answer = await app.call('POST', `${PATH}/${tunnel.metadata.uid}/passwords`, { token: 'editor', body: {} })
  expect([codeOf(answer), answer.body.msg]).toEqual(['409 conflict', 'the tunnel was deleted meanwhile'])
})

const post = () => app.call('POST', PATH, { token: 'editor', body: { name: 'web', regionId: 1 } })

test('a tunnel that is deleted during its creation is 409 conflict at once', async () => {
  using waits = vi.spyOn(deps.tunnels, 'waitFor')
  const made = Promise.withResolvers<Key>()
  meanwhile = async (key) => {
    await known(key)
    made.resolve(key)
  }
  const answering = post()
  const key = await made.promise
  // The first wait is that of `known`, the second that of the request, which has then seen the tunnel. The deletion is one event.
  await expect.poll(() => waits.mock.calls.length).toBeGreaterThan(1)
  const tunnel = await store.get(Tunnel, key)
  await store.replace(Tunnel, { ...tunnel, metadata: { ...tunnel?.metadata, finalizers: [] } } as never)
  await store.delete(Tunnel, key)
  expect(codeOf(await answering)).toBe('409 conflict')
})

// Must be the last test: it deletes the namespace.
test('a tunnel that is deleted with its namespace before the cache has it is 409 conflict at once', async () => {
  meanwhile = async (key) => {
    await store.delete(Namespace, { name: 'acme--prod' })
    await take(Tunnel, key)
    const isGone = () => (deps.tunnels.get(key) === undefined ? true : undefined)
    await deps.tunnels.waitFor(key, isGone, soon())
  }
  expect(codeOf(await post())).toBe('409 conflict')
})
