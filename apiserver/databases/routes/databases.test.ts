import { expect, test } from 'vitest'
import { Secret } from '../../../crds/core.ts'
import { DedicatedDatabase } from '../../../crds/dedicated-database.ts'
import { annotations } from '../../../crds/names.ts'
import { REGION_ID } from '../../../test/builders/resources.ts'
import { databaseOf, startDatabaseApi } from '../../../test/support/api/database-api.ts'
import { type Answer, codeOf } from '../../../test/support/api/http-app.ts'
import type { DatabaseView } from '../database-view.ts'

const listOf = ({ body }: Answer) => body.data as { databases: DatabaseView[]; nextCursor: string | null }

test('GET returns the connection of a running database to callers that may read it, and records the read', async () => {
  await using api = await startDatabaseApi()
  const { id } = await api.created()
  const get = async (as?: 'vera') => databaseOf(await api.call(`GET /v1/databases/${id}`, as && { as }))
  expect(await get()).toMatchObject({ status: 'provisioning', connection: null, engineVersion: null })
  await api.runs(id)
  expect(await get('vera')).toMatchObject({ status: 'running', connection: null })
  expect(api.recorded.map(({ action }) => action)).toEqual(['create'])
  expect(await get()).toMatchObject({
    ...{ status: 'running', statusReason: null, engineVersion: '15.4' },
    connection: {
      ...{ host: 'db.example.com', port: 5432, user: 'u', password: 'password-1', database: 'n', ca: 'PEM' },
      ...{ uri: 'postgresql://u:password-1@db.example.com:5432/n', internalHost: 'db.mooring-shared.svc' },
    },
  })
  expect(api.recorded.map(({ action }) => action)).toEqual(['create', 'read'])
  await api.reports(id, { phase: 'failed' }, 'ServerUnavailable')
  const failed = {
    status: 'failed',
    statusReason: 'because: ServerUnavailable',
    statusCode: 'ServerUnavailable',
    connection: null,
  }
  expect(await get()).toMatchObject(failed)
})

test('GET is 503 while the Secret is missing', async () => {
  await using api = await startDatabaseApi({ rotationMs: 50 })
  const { id } = await api.created()
  await api.runs(id)
  await api.store.delete(Secret, { namespace: 'acme--prod', name: 'shop-credentials' })
  expect(codeOf(await api.call(`GET /v1/databases/${id}`))).toBe('503 unavailable')
  expect(codeOf(await api.call(`GET /v1/databases/${id}`, { as: 'vera' }))).toBe('200 OK')
})

test('GET waits while the Secret has a password that the engine may not have yet', async () => {
  await using api = await startDatabaseApi()
  const { id } = await api.created()
  await api.runs(id)
  // The operator draws a new password after a deletion of the Secret by hand.
  const notes = { [annotations.passwordId]: 'drawn' }
  const secret = { namespace: 'acme--prod', name: 'shop-credentials' }
  await api.store.mergePatch(Secret, secret, { metadata: { annotations: notes } })
  const answering = api.call(`GET /v1/databases/${id}`)
  await api.reports(id, { phase: 'running', passwordId: 'other' }, 'Running')
  await api.reports(id, { phase: 'running', passwordId: 'drawn' }, 'Running')
  expect(databaseOf(await answering).connection).toMatchObject({ password: 'password-1' })
  expect((await api.stored())[0]?.status?.passwordId).toBe('drawn')
})

test('a database of another tenant is 404, and a viewer can read but not change', async () => {
  await using api = await startDatabaseApi()
  const { id } = await api.created()
  const calls = ['PATCH', 'DELETE', 'GET'].map((method) => `${method} /v1/databases/${id}`)
  calls.push(`POST /v1/databases/${id}/password`)
  for (const what of calls) {
    const body = what.startsWith('PATCH') ? { privateNetwork: true } : undefined
    expect(codeOf(await api.call(what, { as: 'olaf', body })), what).toBe('404 not_found')
    const viewer = what.startsWith('GET') ? '200 OK' : '403 forbidden'
    expect(codeOf(await api.call(what, { as: 'vera', body })), what).toBe(viewer)
  }
  for (const other of ['x', REGION_ID]) expect(codeOf(await api.call(`GET /v1/databases/${other}`))).toBe('404 not_found')
})

test('a list has only databases that the caller may read, filtered, paged, newest first and without connections', async () => {
  await using api = await startDatabaseApi()
  for (const name of ['a', 'b', 'c']) await api.runs((await api.created({ name })).id)
  await api.created({ name: 'd', engine: 'postgresql-14.4.0', plan: 'older' })
  await api.created({ name: 'theirs' }, { as: 'olaf' })
  const list = async (query = '', as: 'erin' | 'olaf' | 'vera' = 'erin') =>
    listOf(await api.call(`GET /v1/databases${query}`, { as }))
  const names = async (query: string) => (await list(query)).databases.map(({ name }) => name)
  expect(await names('')).toEqual(['d', 'c', 'b', 'a'])
  expect((await list('', 'olaf')).databases.map(({ name }) => name)).toEqual(['theirs'])
  expect((await list('', 'vera')).databases).toHaveLength(4)
  for (const database of (await list()).databases) expect(database.connection).toBeNull()
  expect(await names('?name=b')).toEqual(['b'])
  expect(await names('?engine=postgresql-14.4.0')).toEqual(['d'])
  expect(await names('?status=running')).toEqual(['c', 'b', 'a'])
  expect(await names(`?organization=acme&namespace=prod&region=${REGION_ID.toUpperCase()}`)).toHaveLength(4)
  expect(await names('?namespace=other')).toEqual([])
  const first = await list('?limit=3')
  expect(first.databases).toHaveLength(3)
  expect((await list(`?limit=3&cursor=${first.nextCursor ?? ''}`)).databases.map(({ name }) => name)).toEqual(['a'])
  for (const query of ['?color=x', '?status=up', '?limit=0']) {
    expect(codeOf(await api.call(`GET /v1/databases${query}`)), query).toBe('400 invalid_request')
  }
})

test('a database created by kubectl has the same form', async () => {
  await using api = await startDatabaseApi()
  const spec = { motor: 'postgresql-15.4.0', region: REGION_ID, plan: 'small' } as const
  const { metadata } = await api.store.create(DedicatedDatabase, { metadata: { name: 'applied', namespace: 'acme--prod' }, spec })
  await expect.poll(async () => codeOf(await api.call(`GET /v1/databases/${metadata.uid}`))).toBe('200 OK')
  const [database] = listOf(await api.call('GET /v1/databases')).databases
  expect(database).toMatchObject({ name: 'applied', createdBy: null, status: 'provisioning', firewallRules: null })
})

test('the catalog offers the add-ons for every engine, without monitoring where there is no journal', async () => {
  await using api = await startDatabaseApi()
  type Engines = { engines: { id: string; addons: string[] }[] }
  const { engines } = (await api.call('GET /v1/engines')).body.data as Engines
  for (const { addons } of engines) expect(addons).toEqual(['firewall', 'private-network', 'ssh-tunnel'])
  const { metadata } = (await api.call('GET /v1/databases/create/metadata')).body.data as {
    metadata: Engines & { addons: object[] }
  }
  const ids = engines.map(({ id }) => id)
  expect(metadata.addons).toEqual([
    { id: 'firewall', name: 'Firewall', engines: ids },
    { id: 'private-network', name: 'Private networking', engines: ids },
    { id: 'ssh-tunnel', name: 'SSH tunnel', engines: ids },
  ])
})
