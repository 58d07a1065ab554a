import { expect, test } from 'vitest'
import { Namespace } from '../../../crds/core.ts'
import { DatabaseArchive } from '../../../crds/database-archive.ts'
import { SHARED_NAMESPACE } from '../../../crds/names.ts'
import { archiving, databaseArchive, WINDOW } from '../../../test/builders/archive.ts'
import { readyCondition } from '../../../test/builders/resources.ts'
import { databaseBody, startDatabaseApi } from '../../../test/support/api/database-api.ts'
import { codeOf } from '../../../test/support/api/http-app.ts'
import { createRestoreGrants } from '../../../shared/restore-grants.ts'

/** Uid of a deleted database of `acme/prod` whose backups are kept. */
const KEPT = '9a4e1f6c-6a55-4c6e-9a6b-4f6f1d1c0a99'
const REMOVAL = `DELETE /v1/databases/${KEPT}/backups`
const BACKUPS = `GET /v1/databases/${KEPT}/backups`

interface Given {
  readonly status?: DatabaseArchive['status']
  readonly now?: () => Date
}

/** API with the kept backups of a Namespace `acme--prod`: the present one, or an earlier one of the same name. */
async function apiWith(owner: 'present' | 'earlier', { status, ...options }: Given = {}) {
  const api = await startDatabaseApi({ restoreGrants: createRestoreGrants(new Uint8Array(32)), ...options })
  const { store } = api
  const namespace = await store.get(Namespace, { name: 'acme--prod' })
  const namespaceUid = owner === 'present' ? (namespace?.metadata.uid ?? '') : 'uid-of-the-earlier-one'
  const { metadata, spec } = databaseArchive(KEPT, { spec: { namespaceUid, keptUntil: '2036-01-02T03:04:05Z' } })
  if (!(await store.get(Namespace, { name: SHARED_NAMESPACE })))
    await store.create(Namespace, { metadata: { name: SHARED_NAMESPACE } })
  await store.create(DatabaseArchive, { metadata: { name: metadata.name, namespace: SHARED_NAMESPACE }, spec })
  await store.patchStatus(DatabaseArchive, metadata, { ...archiving, ...status })
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

const restoreTo = (time: string) => ({ body: { ...databaseBody, restoreFrom: { databaseId: KEPT, time } } })

test('a moment of any time zone is stored in UTC', async () => {
  await using api = await apiWith('present')
  await expect.poll(async () => (await api.call(BACKUPS)).status).toBe(200)
  expect((await api.call('POST /v1/databases', restoreTo('2026-01-02T04:30:00+02:00'))).status).toBe(201)
  const [stored] = await api.stored()
  expect(stored?.spec.restoreFrom?.time).toBe('2026-01-02T02:30:00.000Z')
})

test('a moment without a time zone is rejected', async () => {
  await using api = await apiWith('present')
  expect((await api.call('POST /v1/databases', restoreTo('2026-01-02T02:30:00'))).status).toBe(400)
})

/** Window before a gap in the log. */
const EARLIER = { earliest: '2026-01-01T10:00:00.000Z', latest: '2026-01-01T12:00:00.000Z' }
const NOW = '2026-01-02T03:01:00.000Z'

test.each([
  { moment: 'that has just passed', time: NOW, status: 201 },
  { moment: 'in the future', time: '2026-01-02T03:01:00.001Z', status: 422 },
  { moment: 'that has passed while archiving fails', time: NOW, ready: readyCondition('False', 'RepositoryFull'), status: 422 },
  { moment: 'that has passed for minutes', time: '2026-01-02T03:00:30.000Z', now: '2026-01-02T03:02:00.001Z', status: 422 },
  { moment: 'before a gap', time: '2026-01-01T12:00:00.000Z', status: 201 },
  { moment: 'in a gap', time: '2026-01-01T12:00:00.001Z', status: 422 },
  { moment: 'before the first backup', time: '2026-01-01T09:59:59.999Z', status: 422 },
])(
  'a restore to a moment $moment is answered by $status',
  async ({ time, now = NOW, ready = archiving.conditions[0], status }) => {
    await using api = await apiWith('present', {
      status: { conditions: [ready], restoreWindows: [EARLIER, WINDOW] },
      now: () => new Date(now),
    })
    await expect.poll(async () => (await api.call(BACKUPS)).status).toBe(200)
    const answer = await api.call('POST /v1/databases', restoreTo(time))
    expect(answer.status).toBe(status)
    if (status === 201) return
    const windows = `${EARLIER.earliest} to ${EARLIER.latest}, or ${WINDOW.earliest} to ${WINDOW.latest}`
    expect(answer.body.error).toMatchObject({ code: 'outside_restore_window' })
    expect(answer.body.msg).toContain(windows)
  },
)

test('the list of backups says what fails, since when, and what the last drill found', async () => {
  const drillReport = { tables: 12, rows: 1_204_332, compared: 11 }
  const failing = { ...readyCondition('False', 'RepositoryFull'), message: 'no space is left: make space' }
  await using api = await apiWith('present', {
    status: { conditions: [failing], lastVerifiedRestore: WINDOW.latest, drillReport, drillError: 'table public.orders differs' },
  })
  await expect
    .poll(async () => (await api.call(BACKUPS)).body.data)
    .toMatchObject({
      problem: { code: 'RepositoryFull', message: 'no space is left: make space', since: '2026-01-02T03:04:06.000Z' },
      ...{ lastVerifiedRestore: WINDOW.latest, drill: drillReport, drillError: 'table public.orders differs' },
      restoreWindows: [WINDOW],
    })
})
