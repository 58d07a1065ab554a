import pg from 'pg'
import { expect, test } from 'vitest'
import { Secret } from '../../../crds/core.ts'
import { DatabaseServer } from '../../../crds/database-server.ts'
import { DedicatedDatabase } from '../../../crds/dedicated-database.ts'
import { conditionOf } from '../../../store/conditions.ts'
import { serverKeyOf } from '../../../operator/dedicated-database/resources.ts'
import { isRunning, startDedicated } from '../../support/operator/dedicated.ts'
import { liveThrough } from '../../support/operator/dedicated-life.ts'
import { motorsUnderTest } from '../../support/families/motors-under-test.ts'

test.each(motorsUnderTest())(
  'a dedicated database of %s runs, changes, survives kill -9 and is deleted with its server',
  (motor) => liveThrough(motor),
)

test('a dedicated database keeps its size when its plan shrinks, repairs its Secret, and holds its server', async () => {
  await using it = await startDedicated('postgresql-15.4.0')
  await it.create('orders', { plan: 'medium' })
  const made = await it.until('orders', isRunning)
  const pid = await it.pidOf(made)

  await it.change('orders', { plan: 'small' })
  const refused = await it.until('orders', ({ status }) => status?.phase === 'failed')
  expect(conditionOf(refused, 'Ready')).toMatchObject({ reason: 'StorageShrinks' })
  expect(await it.store.get(DatabaseServer, serverKeyOf(made))).toMatchObject({ spec: { size: { storageGiB: 2 } } })
  await it.change('orders', { plan: 'medium' })
  await it.until('orders', isRunning)

  // By hand, as `kubectl delete` would.
  await it.store.delete(DatabaseServer, serverKeyOf(made))
  await it.store.delete(Secret, it.key('orders-credentials'))
  await it.change('orders', { passwordVersion: 2 })
  const repaired = await it.until('orders', (now) => isRunning(now) && now.status?.passwordVersion === 2)
  await it.logIn(repaired)
  expect(await it.pidOf(repaired)).toBe(pid)
})

test('a dedicated PostgreSQL has the extensions of its spec, and its user learns how to get others', async () => {
  await using it = await startDedicated('postgresql-15.4.0')
  await it.create('orders', { extensions: ['citext'] })
  await it.until('orders', (now) => isRunning(now) && now.status?.extensions?.includes('citext') === true)
  await using opened = new AsyncDisposableStack()
  const client = new pg.Client({ connectionString: await it.secret('orders', 'uri') })
  await client.connect()
  opened.defer(() => client.end())
  await client.query('CREATE TABLE people (email citext); CREATE EXTENSION IF NOT EXISTS citext')
  const refusal = /POST \/v1\/databases\/\{id\}\/extensions with the body \{"name":"hstore"\} installs it/
  await expect(client.query('CREATE EXTENSION hstore')).rejects.toThrow(refusal)

  await it.change('orders', { extensions: ['citext', 'hstore'] })
  await it.until('orders', (now) => isRunning(now) && now.status?.extensions?.length === 2)
  await client.query(`SELECT 'a=>1'::hstore; DROP EXTENSION hstore`)
  await it.change('orders', { extensionsVersion: 1 })
  await it.until('orders', (now) => isRunning(now) && now.status?.extensionsVersion === 1)
  await client.query(`SELECT 'a=>1'::hstore`)
})

test('the server of a dedicated database whose finalizer a client removed is deleted with its process', async () => {
  await using it = await startDedicated('postgresql-15.4.0')
  await it.create('orders')
  const made = await it.until('orders', isRunning)
  const pid = await it.pidOf(made)

  // By hand, as `kubectl patch` and `kubectl delete` would. Started together, so that the operator cannot add the finalizer in between.
  const patched = it.store.mergePatch(DedicatedDatabase, it.key('orders'), { metadata: { finalizers: [] } })
  await Promise.all([patched, it.store.delete(DedicatedDatabase, it.key('orders'))])
  await it.gone('orders')

  await it.caches.servers.waitFor(serverKeyOf(made), (now) => (now ? undefined : true), AbortSignal.timeout(60_000))
  expect(() => process.kill(pid, 0)).toThrow('ESRCH')
})
