import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { Secret } from '../../crds/core.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { decodeSecret } from '../../operator/secret-data.ts'
import type { AdminTarget } from '../../operator/engines/engine.ts'
import { createEmbeddedStore } from '../../store/embedded.ts'
import type { Key, Store } from '../../store/port.ts'
import type { Answer, Instance } from '../support/api/answers.ts'
import { adminLogins } from '../support/deployment/data-directory.ts'
import { type MortalMooring, startMortal } from '../support/deployment/mortal-mooring.ts'
import { SOON } from '../support/patience.ts'
import { query, type Row } from '../support/postgresql/sql.ts'

let mooring: MortalMooring
beforeAll(async () => {
  mooring = await startMortal()
})
afterAll(() => mooring[Symbol.asyncDispose]())

const create = (): Promise<Answer> =>
  mooring.call('POST', '/v1/instances', {
    body: { identifier: 'careless', region: mooring.living().ready.region, motor: 'postgresql-15.4.0' },
    headers: { 'Idempotency-Key': 'careless' },
  })

const grantedBy = (answer: Answer): Instance => {
  expect([200, 201]).toContain(answer.status)
  return answer.body.data.instance
}

/** Runs `work` with the state of a Mooring that has ended, and with the key of the Secret of its only instance. */
async function inState<T>(work: (store: Store, secret: Key) => Promise<T>): Promise<T> {
  await using store = await createEmbeddedStore({ path: join(mooring.dataDir, 'state.db') })
  const [instance] = (await store.list(SharedInstance)).items
  return await work(store, { namespace: instance?.metadata.namespace, name: instance?.status?.secretRef?.name ?? '' })
}

/** Session of an administrator that blocks each change of a role until it ends. */
async function blockChanges(target: AdminTarget, role: string): Promise<pg.Client> {
  const client = new pg.Client({ ...target, database: 'postgres' })
  await client.connect()
  await client.query('BEGIN')
  await client.query('UPDATE pg_authid SET rolconnlimit = rolconnlimit WHERE rolname = $1', [role])
  return client
}

/** Whether a session waits for a lock, as the operator does for a blocked role. (A transaction sees pg_stat_activity as it was at first.) */
const WAITS = 'SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted) AS waits'

test('no answer has the password of a restored Secret that the engine did not get before kill -9, until the engine has it', async () => {
  const before = grantedBy(await create())
  const [login] = await adminLogins(mooring.dataDir)
  if (!login) throw new Error('there is no database server')
  const { target } = login
  await mooring.kill()
  await inState((store, secret) => store.delete(Secret, secret))
  await mooring.expectKilledAtStart('change.secret')
  const data = await inState(async (store, secret) => (await store.get(Secret, secret))?.data)
  const password = decodeSecret(data ?? {}, 'password') ?? ''
  expect(password).toMatch(/^[0-9A-Za-z]{24}$/)
  expect(password).not.toBe(before.password)
  await expect(query({ ...before, password }, 'SELECT 1')).rejects.toMatchObject({ code: '28P01' })

  const blocker = await blockChanges(target, before.name)
  try {
    await mooring.start()
    const path = `/v1/instances/${before.id}`
    const body = { region: mooring.living().ready.region, motor: 'postgresql-15.4.0' }
    const answering = [
      create(),
      mooring.call('GET', `${path}?include=credentials`),
      mooring.call('PUT', '/v1/instances/by-identifier/careless', { body }),
    ]
    const isAnswered = vi.fn()
    const answered = Promise.all(answering.map((answer) => answer.finally(isAnswered)))
    await expect.poll(async () => (await blocker.query<Row>(WAITS)).rows, SOON).toEqual([{ waits: true }])
    // Later requests are answered meanwhile.
    for (let index = 0; index < 20; index++) expect((await mooring.call('GET', path)).status).toBe(200)
    expect(isAnswered).not.toHaveBeenCalled()

    await blocker.query('ROLLBACK')
    for (const answer of await answered) {
      const instance = grantedBy(answer)
      expect(instance).toMatchObject({ id: before.id, password })
      expect(await query(instance, 'SELECT current_user AS user')).toEqual([{ user: instance.name }])
    }
  } finally {
    await blocker.end()
  }
  await expect(query(before, 'SELECT 1')).rejects.toMatchObject({ code: '28P01' })
})
