import { expect, test } from 'vitest'
import { startMooring } from '../support/deployment/mooring.ts'
import { query } from '../support/postgresql/sql.ts'

test('every instance, member and token works after kill -9 and a restart', async () => {
  await using first = await startMooring()
  const namespace = '/v1/organizations/default/namespaces/default'
  const instanceBody = { identifier: 'PR #7', region: first.ready.region, motor: 'postgresql-15.4.0' }
  const headers = { 'Idempotency-Key': 'build-7' }
  const { instance } = (await first.call('POST', '/v1/instances', { body: instanceBody, headers })).body.data
  await query(instance, 'CREATE TABLE kept AS SELECT 42 AS answer')
  const apiToken = (await first.call('POST', `${namespace}/api-tokens`, { body: { name: 'ci', role: 'editor' } })).body.data
    .apiToken
  await first.call('PUT', `${namespace}/members/corp:ada`, { body: { role: 'viewer' } })
  await first.call('POST', '/v1/organizations', { body: { slug: 'acme', name: 'Acme' } })

  first.process.kill('SIGKILL')
  await using second = await startMooring({ dataDir: first.dataDir })

  expect(await query(instance, 'SELECT answer FROM kept')).toEqual([{ answer: 42 }])
  const again = await second.call('POST', '/v1/instances', { body: instanceBody, headers })
  expect(again.body.data.instance).toEqual(instance)
  const old = { token: first.ready.token }
  expect((await second.call('GET', '/v1/instances', old)).body.data.instances.map(({ id }) => id)).toEqual([instance.id])
  expect((await second.call('GET', '/v1/me', { token: apiToken.token })).status).toBe(200)
  expect((await second.call('GET', `${namespace}/members`, old)).body.data.members).toEqual([
    { subject: 'corp:ada', role: 'viewer' },
  ])
  expect((await second.call('GET', '/v1/organizations/acme', old)).status).toBe(200)
})
