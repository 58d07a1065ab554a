import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ApiToken } from '../../../crds/api-token.ts'
import { Secret } from '../../../crds/core.ts'
import type { Kind } from '../../../crds/kind.ts'
import { Organization } from '../../../crds/organization.ts'
import { Plan } from '../../../crds/plan.ts'
import { Region } from '../../../crds/region.ts'
import { SharedInstance } from '../../../crds/shared-instance.ts'
import { type Conditioned, conditionOf, isReady } from '../../../store/conditions.ts'
import type { Key } from '../../../store/port.ts'
import { REGION_ID } from '../../builders/resources.ts'
import { type RunningOperator, startOperator } from '../../support/operator/operator.ts'
import { startPostgres, type ThrowAwayPostgres } from '../../support/postgresql/postgres.ts'
import { decodeSecret } from '../../../operator/secret-data.ts'
import { LATER } from '../../support/patience.ts'

const NAMESPACE = 'acme--prod'
const SWEEP = { every: { sessionsMs: 60_000, sweepMs: 100 } }
const SPEC = { region: REGION_ID, motor: 'postgresql-15.4.0' } as const

let server: ThrowAwayPostgres
let operator: RunningOperator
beforeAll(async () => {
  server = await startPostgres('15')
  operator = await startOperator({ target: server.target, settings: SWEEP })
})
afterAll(async () => {
  await operator[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
})

const key = (name: string) => ({ namespace: NAMESPACE, name })
const uriOf = async (name: string) =>
  decodeSecret((await operator.store.get(Secret, key(`${name}-credentials`)))?.data ?? {}, 'uri') ?? ''

/** Spec as a user applies it: only fields without a default, no finalizer, no annotation of the REST API. */
async function apply(name: string, more: Partial<SharedInstance['spec']> = {}): Promise<SharedInstance> {
  await operator.store.create(SharedInstance, { metadata: key(name), spec: { identifier: name, ...SPEC, ...more } })
  return ready(name)
}

async function ready(name: string): Promise<SharedInstance> {
  await operator.untilInstance(
    name,
    (now) => now !== undefined && isReady(now) && now.status?.observedGeneration === now.metadata.generation,
  )
  const found = operator.instances.get(key(name))
  if (!found) throw new Error(`${name} is gone`)
  return found
}

async function query(uri: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: uri })
  client.on('error', () => undefined)
  try {
    await client.connect()
    return (await client.query<Record<string, unknown>>(sql)).rows
  } finally {
    await client.end()
  }
}

test('a SharedInstance applied with kubectl becomes a database with a working Secret, which is deleted with it', async () => {
  const { metadata, status } = await apply('plain')
  expect(metadata.finalizers).toEqual(['mooring.dev/cleanup'])
  expect(status).toMatchObject({ isEnabled: true, passwordVersion: 1, resetVersion: 0, secretRef: { name: 'plain-credentials' } })
  expect(await query(await uriOf('plain'), 'SELECT 1 AS one')).toEqual([{ one: 1 }])
  await operator.store.delete(SharedInstance, key('plain'))
  await operator.untilInstance('plain', (now) => now === undefined)
  await expect.poll(() => operator.store.get(Secret, key('plain-credentials'))).toBeUndefined()
})

test('`enabled` switches the login of an instance off and on', async () => {
  await apply('switch')
  await operator.store.mergePatch(SharedInstance, key('switch'), { spec: { enabled: false } })
  await operator.untilInstance('switch', (now) => now !== undefined && conditionOf(now, 'Ready')?.reason === 'Disabled')
  await expect(query(await uriOf('switch'), 'SELECT 1')).rejects.toThrow()
  await operator.store.mergePatch(SharedInstance, key('switch'), { spec: { enabled: true } })
  await ready('switch')
  expect(await query(await uriOf('switch'), 'SELECT 1 AS one')).toEqual([{ one: 1 }])
})

test('a higher `passwordVersion` rotates the password, and the old one is rejected', async () => {
  await apply('rotate')
  const before = await uriOf('rotate')
  await operator.store.mergePatch(SharedInstance, key('rotate'), { spec: { passwordVersion: 2 } })
  await operator.untilInstance('rotate', (now) => now?.status?.passwordVersion === 2)
  await expect(query(before, 'SELECT 1')).rejects.toThrow()
  expect(await query(await uriOf('rotate'), 'SELECT 1 AS one')).toEqual([{ one: 1 }])
})

test('a `templateRef` makes the database a copy of the template', async () => {
  await apply('template')
  await query(await uriOf('template'), 'CREATE TABLE t AS SELECT 42 AS answer')
  await apply('copy', { templateRef: { name: 'template' } })
  expect(await query(await uriOf('copy'), 'SELECT answer FROM t')).toEqual([{ answer: 42 }])
})

test('an instance waits for a template that is applied after it', async () => {
  await operator.store.create(SharedInstance, {
    metadata: key('early'),
    spec: { identifier: 'early', ...SPEC, templateRef: { name: 'later' } },
  })
  await operator.untilInstance('early', (now) => now !== undefined && conditionOf(now, 'Ready')?.reason === 'TemplateNotFound')
  await apply('later')
  await ready('early')
})

test('`expiresAt` deletes an instance at that time', async () => {
  await apply('brief', { expiresAt: new Date(Date.now() + 2_000).toISOString() })
  await operator.untilInstance('brief', (now) => now === undefined)
})

test('regions, plans, organizations and API tokens report whether they can be used', async () => {
  const price = { amount: '1', currency: 'EUR', unit: 'month' }
  const size = { name: 'p', cpu: 1, memoryMiB: 1024, storageGiB: 10, price }
  await operator.store.create(Plan, { metadata: { name: 'offered' }, spec: { ...size, engines: ['postgresql-15.4.0'] } })
  await operator.store.create(Plan, { metadata: { name: 'not-offered' }, spec: { ...size, engines: ['mongodb-7.0.2'] } })
  const id = '1b8f5d0e-6a55-4c6e-9a6b-4f6f1d1c0a01'
  await operator.store.create(Region, { metadata: { name: 'empty' }, spec: { id, regionId: 2, name: 'empty' } })
  const soon = new Date(Date.now() + 1_000).toISOString()
  await operator.store.create(ApiToken, {
    metadata: key('token'),
    spec: { displayName: 'ci', role: 'viewer', expiresAt: soon, sha256: '0'.repeat(64) },
  })
  const reasonOf = async (kind: Kind, at: Key) =>
    conditionOf(((await operator.store.get(kind, at)) ?? {}) as Conditioned, 'Ready')?.reason
  const reasons = () =>
    Promise.all([
      reasonOf(Region, { name: 'local' }),
      reasonOf(Region, { name: 'empty' }),
      reasonOf(Plan, { name: 'offered' }),
      reasonOf(Plan, { name: 'not-offered' }),
      reasonOf(Organization, { name: 'acme' }),
      reasonOf(ApiToken, key('token')),
    ])
  await expect.poll(reasons, LATER).toEqual(['Serving', 'NoMotors', 'Offered', 'NotOffered', 'Active', 'Expired'])
  expect((await operator.store.get(ApiToken, key('token')))?.status?.expiresAt).toBe(soon)
})
