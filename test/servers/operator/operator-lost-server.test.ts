import { afterAll, beforeAll, expect, test } from 'vitest'
import { Secret } from '../../../crds/core.ts'
import { DatabaseServer } from '../../../crds/database-server.ts'
import { annotations, SHARED_NAMESPACE } from '../../../crds/names.ts'
import { SharedInstance } from '../../../crds/shared-instance.ts'
import { postgresqlAdmin } from '../../../operator/engines/postgresql/postgresql.ts'
import { serverName } from '../../../operator/fleet/plan.ts'
import { encodeSecret } from '../../../operator/secret-data.ts'
import { adminSecretName } from '../../../operator/server/credentials.ts'
import { isSettled } from '../../../operator/shared-instance/indexes.ts'
import { conditionOf, isReady } from '../../../store/conditions.ts'
import { NAMESPACE, type RunningOperator, startOperator } from '../../support/operator/operator.ts'
import { startPostgres, type ThrowAwayPostgres } from '../../support/postgresql/postgres.ts'

const [FIRST, SECOND] = [1, 2].map((ordinal) => serverName('postgresql-15.4.0', 1, ordinal)) as [string, string]
const inShared = (name: string) => ({ namespace: SHARED_NAMESPACE, name })
const tenant = { namespace: NAMESPACE, name: 'tenant' }

/** The one process behind all servers of this file. */
let server: ThrowAwayPostgres
beforeAll(async () => {
  server = await startPostgres('15')
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
})

/** Starts an operator with a ready instance, and returns that. */
async function withInstance() {
  const operator = await startOperator({ target: server.target })
  const { user: username, password } = server.target
  await operator.store.create(Secret, {
    metadata: inShared(adminSecretName(SECOND)),
    data: encodeSecret({ username, password }),
  })
  await operator.create(tenant.name)
  await operator.untilInstance(tenant.name, (now) => now !== undefined && isReady(now))
  return operator
}

/** Deletes the first server with all that is on it, as an administrator may. */
async function deleteServer({ store }: RunningOperator): Promise<void> {
  await store.mergePatch(DatabaseServer, inShared(FIRST), { metadata: { annotations: { [annotations.forceDelete]: 'true' } } })
  await store.delete(DatabaseServer, inShared(FIRST))
}

const statusOf = ({ instances }: RunningOperator) => instances.get(tenant)?.status

async function loseDatabase(operator: RunningOperator): Promise<void> {
  await using admin = postgresqlAdmin(server.target)
  await admin.drop(statusOf(operator)?.name ?? '')
}

const untilLost = (operator: RunningOperator, message: string) =>
  operator.untilInstance(tenant.name, (now) => {
    const ready = now && conditionOf(now, 'Ready')
    return ready?.reason === 'DatabaseMissing' && ready.message.includes(message)
  })

async function reset(operator: RunningOperator): Promise<void> {
  await operator.store.mergePatch(SharedInstance, tenant, { spec: { resetVersion: 1 } })
  await operator.untilInstance(tenant.name, (now) => now?.status?.resetVersion === 1 && isSettled(now))
}

test('an instance whose server is gone is not ready, and a reset makes its database on another one with its password', async () => {
  await using operator = await withInstance()
  const before = await operator.credentialsOf(tenant.name)
  await loseDatabase(operator)
  await deleteServer(operator)
  await untilLost(operator, 'its database server is gone')
  await reset(operator)
  // The name of the lost server is not used again.
  expect(statusOf(operator)?.serverRef?.name).toBe(SECOND)
  expect(await operator.credentialsOf(tenant.name)).toEqual(before)
  await (await server.client(before)).query('SELECT')
  await loseDatabase(operator)
})

test('an instance is ready on a new server of the old name only if its database is there', async () => {
  await using operator = await withInstance()
  const replace = async () => {
    const { spec, metadata } = (await operator.store.get(DatabaseServer, inShared(FIRST))) ?? expect.fail('no server')
    await deleteServer(operator)
    await expect.poll(() => operator.store.get(DatabaseServer, inShared(FIRST))).toBeUndefined()
    const { user: username, password } = server.target
    await operator.store
      .create(Secret, { metadata: inShared(adminSecretName(FIRST)), data: encodeSecret({ username, password }) })
      .catch(() => undefined)
    const created = await operator.store.create(DatabaseServer, {
      metadata: { ...inShared(FIRST), finalizers: metadata.finalizers ?? [] },
      spec,
    })
    return created.metadata.uid
  }
  const uid = await replace()
  await operator.untilInstance(tenant.name, (now) => now?.status?.serverRef?.uid === uid && isReady(now))

  await loseDatabase(operator)
  await replace()
  await untilLost(operator, 'the engine no longer has the database')
  await reset(operator)
  expect(statusOf(operator)?.serverRef?.name).toBe(FIRST)
  await loseDatabase(operator)
})
