import { expect, test } from 'vitest'
import { codeOf } from '../support/api/answers.ts'
import { startMooring } from '../support/deployment/mooring.ts'
import { query } from '../support/postgresql/sql.ts'
import { tenantsListed, tenantsOf } from '../support/deployment/data-directory.ts'

const CLIENTS = 40
const RAISED = ['quota-instances', 'write-rate', 'write-burst', 'read-rate', 'read-burst'].flatMap((name) => [
  `--${name}`,
  '1000',
])

test('forty concurrent clients each get a database, and all databases are deleted again', async () => {
  await using mooring = await startMooring({ args: RAISED })
  const { region } = mooring.ready
  const answers = await Promise.all(
    Array.from({ length: CLIENTS }, (_, index) =>
      mooring.call('POST', '/v1/instances', { body: { identifier: `client ${index}`, region, motor: 'postgresql-15.4.0' } }),
    ),
  )
  expect(answers.filter(({ status }) => status !== 201).map(codeOf)).toEqual([])
  const tenants = await tenantsOf(mooring.dataDir)
  expect(Object.keys(tenants)).toHaveLength(CLIENTS)
  expect(tenants).toEqual(await tenantsListed(mooring))
  const instances = answers.map(({ body }) => body.data.instance)
  for (const instance of instances.slice(0, 5)) expect(await query(instance, 'SELECT 1 AS one')).toEqual([{ one: 1 }])

  const removed = await Promise.all(instances.map(({ id }) => mooring.call('DELETE', `/v1/instances/${id}`)))
  expect(removed.filter(({ status }) => status !== 200).map(codeOf)).toEqual([])
  expect(await tenantsOf(mooring.dataDir)).toEqual({})
})
