import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { Secret } from '../../../crds/core.ts'
import { annotations } from '../../../crds/names.ts'
import { SharedInstance } from '../../../crds/shared-instance.ts'
import { conditionOf, isReady } from '../../../store/conditions.ts'
import { type RunningOperator, startOperator } from '../../support/operator/operator.ts'
import { startPostgres, type ThrowAwayPostgres } from '../../support/postgresql/postgres.ts'
import { SOON } from '../../support/patience.ts'
import { decodeSecret, encodeSecret } from '../../../operator/secret-data.ts'

const NAMESPACE = 'acme--prod'
const base64 = (text: string) => Buffer.from(text).toString('base64')

let server: ThrowAwayPostgres
let operator: RunningOperator
beforeAll(async () => {
  server = await startPostgres('15')
  operator = await startOperator({ target: server.target, settings: { every: { sessionsMs: 60_000, sweepMs: 100 } } })
})
afterAll(async () => {
  await operator[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
})

let serial = 0
let name = ''
const key = () => ({ namespace: NAMESPACE, name: `${name}-credentials` })
const secret = () => operator.store.get(Secret, key())
const text = async (field: string) => decodeSecret((await secret())?.data ?? {}, field)
const instance = () => operator.instances.get({ namespace: NAMESPACE, name })

/** Waits until the status names a password of the Secret as the one in force. Returns its id. */
async function untilInForce(isExpected: (id: string) => boolean = () => true): Promise<string> {
  const inForce = async () => {
    const notes = (await secret())?.metadata.annotations ?? {}
    const { passwordVersion, passwordId = '' } = instance()?.status ?? {}
    expect(notes[annotations.passwordId]).toBe(passwordId)
    expect(notes[annotations.passwordVersion]).toBe(String(passwordVersion))
    expect(isExpected(passwordId)).toBe(true)
    return passwordId
  }
  return await vi.waitFor(inForce, SOON)
}

/** Whether a client can log in with the URI of the Secret. */
async function logsIn(): Promise<boolean> {
  const client = new pg.Client({ connectionString: await text('uri') })
  client.on('error', () => undefined)
  try {
    await client.connect()
    return true
  } finally {
    await client.end()
  }
}

beforeEach(async () => {
  serial += 1
  name = `i-${serial}`
  await operator.create(name)
  await operator.untilInstance(name, (now) => now !== undefined && isReady(now))
})

test('a deleted Secret is restored with a new password, which the engine accepts', async () => {
  const [before, password, id] = [await secret(), await text('password'), instance()?.status?.passwordId]
  const secretRef = instance()?.status?.secretRef
  await operator.store.delete(Secret, key())
  await untilInForce((now) => now !== id)
  expect(await text('password')).toMatch(/^[0-9A-Za-z]{24}$/)
  expect(await text('password')).not.toBe(password)
  expect(await text('database')).toBe(decodeSecret(before?.data ?? {}, 'database'))
  expect(instance()?.status?.secretRef).toEqual(secretRef)
  expect(await logsIn()).toBe(true)
})

test.each([
  { changed: 'the password', data: { password: base64('guessed') } },
  { changed: 'the user', data: { username: base64('another') } },
  { changed: 'every field', data: { password: null, uri: null, database: null, username: null } },
])('a Secret in which a tenant changed $changed gets a new password', async ({ data }) => {
  const [password, database] = [await text('password'), await text('database')]
  await operator.store.mergePatch(Secret, key(), { data })
  const restored = async () => [await text('username'), await text('database'), (await text('password'))?.length]
  await expect.poll(restored, SOON).toEqual([database, database, 24])
  await untilInForce()
  expect(await text('password')).not.toBe(password)
  expect(await logsIn()).toBe(true)
})

test.each([
  { changed: 'the labels', patch: { metadata: { labels: null, annotations: null } } },
  { changed: 'the owner', patch: { metadata: { ownerReferences: null } } },
  { changed: 'the host', patch: { data: { host: base64('example.com'), provider: null } } },
])('a Secret in which a tenant changed $changed is repaired and keeps its password', async ({ patch }) => {
  const before = await secret()
  await operator.store.mergePatch(Secret, key(), patch)
  const rest = async () => {
    const now = await secret()
    const { labels, annotations: notes, ownerReferences: owners } = now?.metadata ?? {}
    return { data: now?.data, labels, notes, owners }
  }
  const { data, metadata } = before ?? {}
  const { labels, annotations: notes, ownerReferences: owners } = metadata ?? {}
  await expect.poll(rest, SOON).toEqual({ data, labels, notes, owners })
  await untilInForce()
  expect(await logsIn()).toBe(true)
})

test('a Secret that a tenant exchanged for another with a valid id is put in force', async () => {
  const before = instance()?.status?.passwordId
  const [uri = '', password = ''] = [await text('uri'), await text('password')]
  const data = encodeSecret({ password: 'chosen', uri: uri.replace(password, 'chosen') })
  const id = randomUUID()
  await operator.store.mergePatch(Secret, key(), { metadata: { annotations: { [annotations.passwordId]: id } }, data })
  expect(before).not.toBe(id)
  await untilInForce((now) => now === id)
  expect(await text('password')).toBe('chosen')
  expect(await logsIn()).toBe(true)
})

test('a Secret of the same name with another owner stays unchanged, and the instance reports SecretTaken', async () => {
  await operator.store.delete(Secret, key())
  const foreign = { metadata: { ...key(), labels: { app: 'other' } }, data: { password: base64('theirs') } }
  // The operator may have restored the Secret since its deletion.
  await expect
    .poll(async () => {
      const made = await Promise.allSettled([operator.store.create(Secret, foreign)])
      if (made[0].status === 'rejected') await operator.store.delete(Secret, key())
      return made[0].status
    })
    .toBe('fulfilled')
  await operator.untilInstance(name, (now) => (now && conditionOf(now, 'Ready')?.reason === 'SecretTaken' ? true : false))
  expect(await text('password')).toBe('theirs')
  await operator.store.delete(Secret, key())
  await operator.untilInstance(name, (now) => now !== undefined && isReady(now))
  expect(await logsIn()).toBe(true)
})

test.each([
  { named: 'none', left: { passwordVersion: null, passwordId: null } },
  { named: 'another', left: { passwordId: randomUUID() } },
])('a crash between the restored Secret and the engine leaves no invalid password: the status names $named', async ({ left }) => {
  const id = instance()?.status?.passwordId
  const { status } = instance() ?? {}
  // State after a crash: the Secret is whole, the engine has another password, and the status names none or another.
  const admin = await server.client()
  await admin.query(`ALTER ROLE "${status?.name ?? ''}" PASSWORD 'another'`)
  await operator.store.patchStatus(SharedInstance, { namespace: NAMESPACE, name }, left)
  await operator.untilInstance(name, (now) => now?.status?.passwordId !== id)
  await operator.untilInstance(name, (now) => now?.status?.passwordId === id)
  expect(await logsIn()).toBe(true)
})

/** Returns the names of the server and the database of an instance. */
function databaseOf(of: string) {
  const { status } = operator.instances.get({ namespace: NAMESPACE, name: of }) ?? {}
  return { database: status?.name ?? '', server: status?.serverRef?.name ?? '' }
}

test.each([
  { named: 'a neighbour’s database', thief: 'thief-1', label: undefined },
  { named: 'an unknown server', thief: 'thief-2', label: 'unknown' },
])('a Secret that existed before the claim, and names $named, is not trusted', async ({ thief, label }) => {
  const { database, server } = databaseOf(name)
  const labels = { 'app.kubernetes.io/managed-by': 'mooring', 'mooring.dev/server': label ?? server }
  const uri = `postgresql://${database}:guessed@127.0.0.1:5432/${database}`
  const texts = { username: database, database, password: 'guessed', uri }
  const metadata = { namespace: NAMESPACE, name: `${thief}-credentials`, labels }
  await operator.store.create(Secret, { metadata, data: encodeSecret(texts) })
  await operator.create(thief)
  await operator.untilInstance(thief, (now) => now !== undefined && isReady(now))
  expect(databaseOf(thief).database).not.toBe(database)
  expect(databaseOf(thief).server).toBe(server)
  expect(await logsIn()).toBe(true)
})
