import { pino } from 'pino'
import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { DatabaseServer } from '../../crds/database-server.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { StoreError } from '../../store/port.ts'
import { claimedStatus, databaseServer, sharedInstance } from '../../test/builders/resources.ts'
import { settableCache } from '../../test/support/store/caches.ts'
import type { Failure } from '../events/events.ts'
import { instanceIndexes } from '../shared-instance/indexes.ts'
import { tenantName } from '../shared-instance/kept-secret.ts'
import { createRestarts, RESTART_INTERVAL_MS, type RestartsDeps } from './restarts.ts'

const server = databaseServer({ metadata: { name: 's' } })
const tenant = tenantName('pr-42', sharedInstance().metadata.uid)

/** Restarts of the server `s`, which has one instance. `takeOver` creates them as the next operator would. */
function restartsOf(patchStatus?: RestartsDeps['store']['patchStatus']) {
  const servers = settableCache(DatabaseServer)
  const instances = settableCache(SharedInstance, instanceIndexes)
  servers.put(server)
  instances.put(sharedInstance({ status: { ...claimedStatus, serverRef: { name: 's' } } }))
  const [log, failures]: [string[], Failure[]] = [[], []]
  let ms = Date.parse('2026-01-01T00:00:00Z')
  const record: RestartsDeps['store']['patchStatus'] = async (kind, _key, status) => {
    if (kind.kind === SharedInstance.kind) {
      const suspended = status as NonNullable<SharedInstance['status']>
      log.push(`suspended until ${suspended.suspension?.until}`)
      const metadata = { resourceVersion: `${10 + log.length}` }
      const next = sharedInstance({ metadata, status: { ...claimedStatus, serverRef: { name: 's' }, ...suspended } })
      instances.put(next)
      return next as never
    }
    log.push('recorded')
    const metadata = { ...server.metadata, resourceVersion: `${10 + log.length}` }
    const next = { ...server, metadata, status: { ...server.status, ...(status as DatabaseServer['status']) } }
    servers.put(next)
    return next as never
  }
  const takeOver = () =>
    createRestarts({
      ...{ store: { patchStatus: patchStatus ?? record }, servers: servers.cache, instances: instances.cache },
      runtime: { restart: async ({ metadata }) => void log.push(`restarted ${metadata.name}`) },
      events: { failure: (failure) => void failures.push(failure) },
      ...{ log: pino({ level: 'silent' }), registry: new Registry(), now: () => new Date(ms) },
    })
  const pass = (by: number) => void (ms += by)
  return { restarts: takeOver(), takeOver, pass, log, failures, servers }
}

test('a restart is recorded before it happens, and Events tell the administrator and the tenants', async () => {
  const { restarts, log, failures } = restartsOf()
  expect(await restarts.request('s', [])).toBe(true)
  expect(log).toEqual(['recorded', 'restarted s'])
  expect(failures.map(({ kind, reason }) => [kind.kind, reason])).toEqual([
    ['DatabaseServer', 'StatementStuck'],
    ['SharedInstance', 'ServerRestarted'],
  ])
})

test('a server is restarted at most once in ten minutes, whatever operator requests it', async () => {
  const { restarts, takeOver, pass, log } = restartsOf()
  await restarts.request('s', [])
  pass(RESTART_INTERVAL_MS - 1)
  expect([await restarts.request('s', []), await takeOver().request('s', [])]).toEqual([false, false])
  pass(1)
  expect(await takeOver().request('s', [])).toBe(true)
  expect(log).toEqual(['recorded', 'restarted s', 'recorded', 'restarted s'])
})

test('a server that changed meanwhile, that is being deleted, or that is unknown, is not restarted', async () => {
  const conflict = restartsOf(() => Promise.reject(new StoreError('conflict', 'it has changed')))
  expect(await conflict.restarts.request('s', [])).toBe(false)
  const { restarts, servers, log } = restartsOf()
  expect(await restarts.request('unknown', [])).toBe(false)
  servers.put({ ...server, metadata: { ...server.metadata, resourceVersion: '9', deletionTimestamp: '2026-01-01T00:00:00Z' } })
  expect(await restarts.request('s', [])).toBe(false)
  expect([...conflict.log, ...log]).toEqual([])
})

test('a tenant that forces restarts is suspended before each of them, for longer each time, whatever operator is running', async () => {
  const { takeOver, pass, log } = restartsOf()
  for (let restart = 1; restart <= 4; restart++) {
    expect(await takeOver().request('s', [tenant, 'withoutowner'])).toBe(true)
    pass(3_600_000)
  }
  pass(24 * 3_600_000)
  await takeOver().request('s', [tenant])
  expect(log.filter((entry) => entry.startsWith('suspended'))).toEqual([
    'suspended until 2026-01-01T00:01:00.000Z',
    'suspended until 2026-01-01T01:05:00.000Z',
    'suspended until 2026-01-01T02:30:00.000Z',
    'suspended until 2026-01-01T03:30:00.000Z',
    'suspended until 2026-01-02T04:01:00.000Z',
  ])
  expect(log.slice(0, 3)).toEqual(['recorded', 'suspended until 2026-01-01T00:01:00.000Z', 'restarted s'])
})

test('a suspension that cannot be written prevents no restart', async () => {
  const { restarts, log } = restartsOf(async (kind) => {
    if (kind.kind === SharedInstance.kind) throw new StoreError('unavailable', 'no answer')
    return server as never
  })
  expect(await restarts.request('s', [tenant])).toBe(true)
  expect(log).toEqual(['restarted s'])
})
