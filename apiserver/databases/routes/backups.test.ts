import { expect, test } from 'vitest'
import { Namespace } from '../../../crds/core.ts'
import { DatabaseArchive } from '../../../crds/database-archive.ts'
import { SHARED_NAMESPACE } from '../../../crds/names.ts'
import { archiving, databaseArchive, WINDOW } from '../../../test/builders/archive.ts'
import { databaseBody, startDatabaseApi } from '../../../test/support/api/database-api.ts'
import { createRestoreGrants } from '../../../shared/restore-grants.ts'

/** Uid of a deleted database of `acme/prod` whose backups are kept. */
const KEPT = '9a4e1f6c-6a55-4c6e-9a6b-4f6f1d1c0a99'
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

test('kept backups of a deleted namespace are hidden from the next namespace of its name', async () => {
  await using api = await apiWith('earlier')
  expect((await api.call(BACKUPS)).status).toBe(404)
  const answer = await api.call('POST /v1/databases', restore)
  expect([answer.status, answer.body.error?.code]).toEqual([422, 'unknown_database'])
  expect(await api.stored()).toEqual([])
})
