import { expect, test } from 'vitest'
import { DedicatedDatabase } from '../../../crds/dedicated-database.ts'
import { databaseOf, startDatabaseApi, type DatabaseApi } from '../../../test/support/api/database-api.ts'
import { codeOf, fieldsOf } from '../../../test/support/api/http-app.ts'
import { ISSUED_PASSWORD } from '../../../crds/tunnel-password.ts'

const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTEx'
const HOSTNAME = '0123456789abcdef'
const assigned = { hostname: HOSTNAME, endpointRef: { name: 'main' }, host: 'ssh.test', port: 22_222 }

async function withTunnel(api: DatabaseApi, sshTunnel: object = {}) {
  const { id } = await api.created({ sshTunnel })
  return { id, path: `/v1/databases/${id}/ssh-passwords` }
}

test('sshTunnel is set, changed field by field, and taken away', async () => {
  await using api = await startDatabaseApi()
  const { id } = await withTunnel(api, { authorizedKeys: [KEY] })
  const patch = async (sshTunnel: unknown) =>
    databaseOf(await api.call(`PATCH /v1/databases/${id}`, { body: { sshTunnel } })).sshTunnel
  expect((await api.stored())[0]?.spec.sshTunnel).toEqual({ authMode: 'both', authorizedKeys: [KEY] })
  expect(await patch({ authMode: 'key' })).toEqual({ authMode: 'key', authorizedKeys: [KEY] })
  expect(await patch({ authorizedKeys: [], authMode: null })).toEqual({ authMode: 'both', authorizedKeys: [] })
  expect(await patch(null)).toBeNull()
  expect(await patch({})).toEqual({ authMode: 'both', authorizedKeys: [] })
})

test('an incomplete key is 400 and named, in a POST and in a PATCH', async () => {
  await using api = await startDatabaseApi()
  const { id } = await withTunnel(api)
  const body = { sshTunnel: { authorizedKeys: [KEY, KEY.slice(0, -8)] } }
  const patched = await api.call(`PATCH /v1/databases/${id}`, { body })
  expect([codeOf(patched), fieldsOf(patched)]).toEqual(['400 invalid_request', ['sshTunnel.authorizedKeys[1]']])
  await expect(api.created({ name: 'other', ...body })).rejects.toThrow('sshTunnel.authorizedKeys[1]')
})

test('a region without edges is 422 no_active_endpoint', async () => {
  await using api = await startDatabaseApi({ endpoint: false })
  await expect(api.created({ sshTunnel: {} })).rejects.toThrow('has no active endpoint with edges')
  const { id } = await api.created()
  const patched = await api.call(`PATCH /v1/databases/${id}`, { body: { sshTunnel: {} } })
  expect([codeOf(patched), fieldsOf(patched)]).toEqual(['422 no_active_endpoint', ['sshTunnel']])
})

test('the connection has the command while the add-on is on', async () => {
  await using api = await startDatabaseApi()
  const { id } = await withTunnel(api)
  const sshOf = async () => databaseOf(await api.call(`GET /v1/databases/${id}`)).connection?.ssh
  await api.runs(id)
  expect(await sshOf()).toBeUndefined()
  const [database] = await api.stored()
  if (database) await api.store.patchStatus(DedicatedDatabase, database.metadata, { sshTunnel: assigned })
  await expect
    .poll(sshOf)
    .toEqual({ command: `ssh -N -L 5432:db:5432 ${HOSTNAME}@ssh.test -p 22222`, hostname: HOSTNAME, knownHosts: [] })
  await api.call(`PATCH /v1/databases/${id}`, { body: { sshTunnel: null } })
  await api.runs(id)
  expect(await sshOf()).toBeUndefined()
})

test('a password is issued once, listed without its text, and revoked', async () => {
  await using api = await startDatabaseApi()
  const { path } = await withTunnel(api)
  const keyed = { headers: { 'Idempotency-Key': 'k' } }
  const issued = await api.call(`POST ${path}`, keyed)
  type Issued = { password: { id: string; password: string; expiresAt: string; createdAt: string; createdBy: string } }
  const { password } = issued.body.data as Issued
  expect([codeOf(issued), password.createdBy]).toEqual(['201 OK', 'erin'])
  expect(password.password).toMatch(ISSUED_PASSWORD)
  expect(Date.parse(password.expiresAt) - Date.parse(password.createdAt)).toBeCloseTo(4 * 3_600_000, -4)
  expect((await api.call(`POST ${path}`, keyed)).body.data).toEqual({ password })
  const { id, expiresAt, createdAt, createdBy } = password
  const shown = { id, expiresAt, createdAt, createdBy }
  expect((await api.call(`GET ${path}`, { as: 'vera' })).body.data).toEqual({ passwords: [shown], nextCursor: null })
  expect(codeOf(await api.call(`DELETE ${path}/${password.id}`, { as: 'vera' }))).toBe('403 forbidden')
  expect(codeOf(await api.call(`DELETE ${path}/${password.id}`))).toBe('200 OK')
  expect(codeOf(await api.call(`DELETE ${path}/${password.id}`))).toBe('404 not_found')
  expect(api.recorded.map(({ action }) => action)).toEqual(['create', 'create', 'delete'])
})

test('of eleven passwords that are issued at the same time, one is 403', async () => {
  await using api = await startDatabaseApi()
  const { path } = await withTunnel(api)
  const answers = await Promise.all(Array.from({ length: 11 }, () => api.call(`POST ${path}`)))
  expect(answers.map(codeOf).toSorted()).toEqual([...Array<string>(10).fill('201 OK'), '403 quota_exceeded'])
})

test('no password is issued without the add-on, with keys alone, to a viewer, or to another tenant', async () => {
  await using api = await startDatabaseApi()
  const { id, path } = await withTunnel(api, { authMode: 'key' })
  expect(codeOf(await api.call(`POST ${path}`))).toBe('409 conflict')
  await api.call(`PATCH /v1/databases/${id}`, { body: { sshTunnel: null } })
  const refused = await api.call(`POST ${path}`)
  expect([codeOf(refused), refused.body.msg]).toEqual([
    '409 conflict',
    'this database has no SSH tunnel; PATCH it with {"sshTunnel":{}} first',
  ])
  expect(codeOf(await api.call(`POST ${path}`, { as: 'vera' }))).toBe('403 forbidden')
  for (const call of [`POST ${path}`, `GET ${path}`, `GET /v1/databases/${id}/connections`])
    expect(codeOf(await api.call(call, { as: 'olaf' })), call).toBe('404 not_found')
})
