import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect, createServer } from 'node:tls'
import { expect, test } from 'vitest'
import { Namespace, Secret } from '../../../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import { TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import { meshSecret } from '../../../shared/edge-objects.ts'
import { openTemporaryStore } from '../../../test/support/store/temporary-store.ts'
import type { Store } from '../../../store/port.ts'
import { decodeSecret } from '../../secret-data.ts'
import { endpoint } from '../../../test/support/operator/edge-objects.ts'
import { createMeshKeeper, meshHost } from './mesh-secret.ts'
import { keyIn } from './names.ts'

const DAY = 86_400_000
const begin = Date.now()
const key = keyIn(meshSecret('eu'))

async function start() {
  const opened = await openTemporaryStore()
  const { store } = opened
  await store.create(Namespace, { metadata: { name: SYSTEM_NAMESPACE } })
  const eu = await store.create(TunnelEndpoint, { metadata: { name: 'eu' }, spec: endpoint().spec })
  return {
    store,
    /** Keeps the Secret like an operator that has just started. */
    keep: (days = 0) => createMeshKeeper({ store, now: () => new Date(begin + days * DAY) }).keep(eu),
    keepOn: () => {
      const keeper = createMeshKeeper({ store, now: () => new Date(begin) })
      return { keep: () => keeper.keep(eu), forget: () => keeper.forget('eu') }
    },
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  }
}

async function textsOf(store: Store) {
  const secret = await store.get(Secret, key)
  const text = (name: string) => decodeSecret(secret?.data ?? {}, name) ?? ''
  return { revision: secret?.metadata.resourceVersion, ca: text('ca.crt'), cert: text('tls.crt'), key: text('tls.key') }
}

test('two edges authenticate each other at both ends of a connection by the Secret', async () => {
  await using installation = await start()
  const { store, keep } = installation
  await keep()
  const { ca, cert, key } = await textsOf(store)
  const server = createServer({ ca, cert, key, requestCert: true, rejectUnauthorized: true }, (socket) => socket.end('hello'))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const client = connect({ port, host: '127.0.0.1', ca, cert, key, servername: meshHost('eu') })
  const [heard] = (await once(client, 'data')) as [Buffer]
  expect(heard.toString()).toBe('hello')
  client.destroy()
  server.close()
})

test('the certificate is renewed by the same CA at two thirds of its lifetime, not before', async () => {
  await using installation = await start()
  const { store, keep } = installation
  await keep()
  const first = await textsOf(store)
  await keep(59)
  expect(await textsOf(store)).toEqual(first)
  await keep(61)
  const second = await textsOf(store)
  expect(second.ca).toBe(first.ca)
  expect(new X509Certificate(second.cert).validToDate.getTime()).toBeGreaterThan(
    new X509Certificate(first.cert).validToDate.getTime(),
  )
})

test.each([
  { damage: 'its certificate', data: { 'tls.crt': 'bm8=' } },
  { damage: 'its key', data: { 'tls.key': null } },
  { damage: 'the authority', data: { 'ca.crt': 'bm8=' } },
])('a Secret that has lost $damage is repaired', async ({ data }) => {
  await using installation = await start()
  const { store, keep } = installation
  await keep()
  await store.mergePatch(Secret, key, { data })
  await keep()
  const { ca, cert } = await textsOf(store)
  expect(new X509Certificate(cert).verify(new X509Certificate(ca).publicKey)).toBe(true)
})

test.each([
  { how: 'deleted', data: undefined },
  { how: 'damaged', data: { 'ca.crt': 'bm8=', 'tls.key': null } },
])('a Secret that was $how is restored from memory', async ({ data }) => {
  await using installation = await start()
  const { store, keepOn } = installation
  const { keep } = keepOn()
  await keep()
  const { ca, cert } = await textsOf(store)
  if (data) await store.mergePatch(Secret, key, { data })
  else await store.delete(Secret, key)
  await keep()
  expect(await textsOf(store)).toMatchObject({ ca, cert })
})

test('forget removes the Secret of an endpoint from memory', async () => {
  await using installation = await start()
  const { store, keepOn } = installation
  const { keep, forget } = keepOn()
  await keep()
  const { ca, key: before } = await textsOf(store)
  forget()
  await store.delete(Secret, key)
  await keep()
  const after = await textsOf(store)
  expect([after.ca === ca, after.key === before]).toEqual([false, false])
})
