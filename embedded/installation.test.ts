import { expect, test } from 'vitest'
import { DatabaseServer } from '../crds/database-server.ts'
import { databaseServer } from '../test/builders/resources.ts'
import { settableCache } from '../test/support/store/caches.ts'
import { warm } from './installation.ts'

const never = new AbortController().signal

function servers(...there: readonly DatabaseServer[]) {
  const settable = settableCache(DatabaseServer)
  settable.put(...there)
  return settable.cache
}

test('a start goes on without a database server when none comes up in time', async () => {
  const hangs = { servers: servers(databaseServer()), firstServer: new Promise(() => undefined) }
  expect(await warm(hangs, never, 20)).toBe(false)
})

test('a start goes on as soon as a database server is up', async () => {
  expect(await warm({ servers: servers(databaseServer()), firstServer: Promise.resolve() }, never)).toBe(true)
})

test('a start that is stopped does not wait for a database server', async () => {
  const reason = new Error('stop')
  const hangs = { servers: servers(), firstServer: new Promise(() => undefined) }
  await expect(warm(hangs, AbortSignal.abort(reason))).rejects.toBe(reason)
  const later = new AbortController()
  const waiting = warm(hangs, later.signal)
  later.abort(reason)
  await expect(waiting).rejects.toBe(reason)
})
