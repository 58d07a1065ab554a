import { expect, test } from 'vitest'
import { Namespace } from '../../../crds/core.ts'
import { DatabaseArchive } from '../../../crds/database-archive.ts'
import { SHARED_NAMESPACE } from '../../../crds/names.ts'
import { archiving, databaseArchive, WINDOW } from '../../../test/builders/archive.ts'
import { databaseBody, startDatabaseApi } from '../../../test/support/api/database-api.ts'
import { codeOf } from '../../../test/support/api/http-app.ts'
import { createRestoreGrants } from '../../../shared/restore-grants.ts'

/** Uid of a deleted database of `acme/prod` whose backups are kept. */
const KEPT = '9a4e1f6c-6a55-4c6e-9a6b-4f6f1d1c0a99'
const REMOVAL = `DELETE /v1/databases/${KEPT}/backups`
const BACKUPS = `GET /v1/databases/${KEPT}/backups`

/** API with the kept backups of a Namespace `acme--prod`: the present one, or an earlier one of the same name. */
async function apiWith(owner: 'present' | 'earlier') {
  const api = await startDatabaseApi({ restoreGrants: createRestoreGrants(new Uint8Array(32)) })
  const { store } = api
  const namespace = await store.get(Namespace, { name: 'acme--prod' })
  const namespaceUid = owner === 'present' ? (namespace?.metadata.uid ?? '') : 'uid-of-the-earlier-one'
  const { metadata, spec } = databaseArchive(KEPT, { spec: { namespaceUid, keptUntil: '2036-01-02T03:04:05Z' } })
  if (!(await store.get(Namespace, { name: SHARED_NAMESPACE })))
    await store.create(Namespace, { metadata: { name: SHARED_NAMESPACE } })
  await store.create(DatabaseArchive, { metadata: { name: metadata.name, namespace: SHARED_NAMESPACE }, spec })
  await store.patchStatus(DatabaseArchive, metadata, archiving)
  return api
}

const restore = { body: { ...databaseBody, restoreFrom: { databaseId: KEPT, time: WINDOW.latest } } }

test('the editor of a namespace restores from the kept backups of a database there', async () => {
  await using api = await apiWith('present')
  await expect.poll(async () => (await api.call(BACKUPS)).body.data).toMatchObject({ restoreWindow: WINDOW })
  expect((await api.call('POST /v1/databases', restore)).status).toBe(201)
})

test.each(['vera', 'olaf'])('kept backups cannot be restored by %s, who is not an editor of their namespace', async (as) => {
  await using api = await apiWith('present')
  await expect.poll(async () => (await api.call(BACKUPS)).status).toBe(200)
  const answer = await api.call('POST /v1/databases', { ...restore, as })
  expect(answer.body.error?.code).toBe(as === 'vera' ? 'forbidden' : 'unknown_database')
  expect(await api.stored()).toEqual([])
})

test('an editor removes the kept backups of a deleted database, and the audit log has it', async () => {
  await using api = await apiWith('present')
  await expect.poll(async () => (await api.call(BACKUPS)).status).toBe(200)
  const remove = (as?: 'vera' | 'olaf') => api.call(REMOVAL, as && { as })
  expect([(await remove('vera')).status, (await remove('olaf')).status]).toEqual([403, 404])
  expect([(await api.call(BACKUPS, { as: 'vera' })).status, (await api.call(BACKUPS, { as: 'olaf' })).status]).toEqual([403, 404])
  expect((await api.store.list(DatabaseArchive)).items).toHaveLength(1)
  expect((await remove()).status).toBe(202)
  expect((await api.store.list(DatabaseArchive)).items).toEqual([])
  await expect.poll(async () => (await remove()).status).toBe(404)
  const { body } = await api.call('POST /v1/databases', restore)
  expect(body.error?.code).toBe('unknown_database')
  expect(api.recorded).toMatchObject([
    {
      action: 'update',
      before: {
        kind: 'DedicatedDatabase',
        metadata: { uid: KEPT, namespace: 'acme--prod' },
        spec: { keptUntil: expect.any(String) as string },
      },
      after: { spec: {} },
    },
  ])
})

test('the backups of a database that exists are removed with its add-on, not by a DELETE', async () => {
  await using api = await apiWith('present')
  const { id } = await api.created({ pointInTimeRecovery: { retentionDays: 7 } })
  expect(codeOf(await api.call(`DELETE /v1/databases/${id}/backups`))).toBe('409 conflict')
  expect(codeOf(await api.call(`DELETE /v1/databases/${id}/backups`, { as: 'vera' }))).toBe('403 forbidden')
})

test('kept backups of a deleted namespace are hidden from the next namespace of its name', async () => {
  await using api = await apiWith('earlier')
  expect([(await api.call(BACKUPS)).status, (await api.call(REMOVAL)).status]).toEqual([404, 404])
  const answer = await api.call('POST /v1/databases', restore)
  expect([answer.status, answer.body.error?.code]).toEqual([422, 'unknown_database'])
  expect(await api.stored()).toEqual([])
})
