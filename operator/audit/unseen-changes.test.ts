import { Registry } from 'prom-client'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { ApiToken } from '../../crds/api-token.ts'
import { Namespace } from '../../crds/core.ts'
import { MooringError } from '../../shared/errors.ts'
import { labels } from '../../crds/names.ts'
import { Tunnel } from '../../crds/tunnel.ts'
import { TunnelPassword } from '../../crds/tunnel-password.ts'
import { auditRecord } from '../../test/conformance/journal/records.ts'
import type { Journal } from '../../journal/port.ts'
import { openTemporaryJournal } from '../../test/support/journal/temporary-journal.ts'
import { createCacheSet } from '../../store/cache.ts'
import { openTemporaryStore } from '../../test/support/store/temporary-store.ts'
import type { Store } from '../../store/port.ts'
import { createUnseenChanges, Backlog } from './unseen-changes.ts'

const NAMESPACE = 'acme--prod'
let parts: AsyncDisposableStack
let store: Store
let journal: Journal
beforeEach(async () => {
  parts = new AsyncDisposableStack()
  store = parts.use(await openTemporaryStore()).store
  journal = parts.use(await openTemporaryJournal()).journal
  await store.create(Namespace, { metadata: { name: NAMESPACE, labels: { [labels.organization]: 'acme' } } })
})
afterEach(() => parts.disposeAsync())

/** Starts an operator's check of the audit log; `stop`, or the end of the test, stops it. */
async function looking(over: Pick<Journal, 'audited' | 'audit'> = journal, most = 100) {
  const ending = new AbortController()
  const registry = new Registry()
  const warnings: string[] = []
  const log = { warn: (_details: object, message: string) => void warnings.push(message) }
  const following = createCacheSet({ store, onError: (error) => log.warn({}, String(error)) })
  const caches = [Tunnel, TunnelPassword, ApiToken].map((kind) => following.cached(kind))
  const namespaces = following.cached(Namespace)
  const unseen = createUnseenChanges({
    caches,
    namespaces,
    journal: over,
    log,
    registry,
    most,
    now: () => new Date(),
    digest: () => 'digest',
    graceMs: 30,
  })
  const work = Promise.all([following.run(ending.signal), unseen.run(ending.signal)])
  const stop = async () => {
    ending.abort()
    await work
  }
  parts.defer(stop)
  await following.synced()
  const forgotten = async () => (await registry.getSingleMetric('mooring_audit_forgotten_changes_total')?.get())?.values[0]?.value
  return { stop, warnings, forgotten }
}

const tunnel = (name: string, namespace = NAMESPACE) =>
  store.create(Tunnel, { metadata: { name, namespace }, spec: { regionId: 1, displayName: name } })

const recorded = (id: string, generation: number | null, action: 'create' | 'delete') =>
  journal.audit(auditRecord({ namespace: NAMESPACE, resource: { kind: 'Tunnel', id, name: 'x' }, generation, action }))

const entries = async () =>
  (await journal.auditEntries({ namespace: NAMESPACE }, { limit: 50 })).map(
    ({ actor, via, action, resource, generation }) =>
      `${actor?.name ?? 'nobody'} ${via} ${action} ${resource.kind} ${resource.name} ${generation ?? '-'}`,
  )

const untilThere = (...desired: readonly string[]) =>
  vi.waitFor(async () => expect(await entries()).toEqual(expect.arrayContaining([...desired])), { timeout: 60_000, interval: 20 })

test('an unrecorded change gets an entry, a recorded one gets no second entry', async () => {
  const seen = await tunnel('seen')
  await recorded(seen.metadata.uid, 1, 'create')
  await tunnel('unseen')
  await store.create(Namespace, { metadata: { name: 'of-nobody' } })
  await tunnel('elsewhere', 'of-nobody')
  await looking()
  await untilThere('nobody unknown create Tunnel unseen 1')
  await store.mergePatch(Tunnel, seen.metadata, { spec: { displayName: 'other' } })
  await untilThere('nobody unknown update Tunnel other 2')
  await store.delete(Tunnel, seen.metadata)
  await untilThere('nobody unknown delete Tunnel other -')
  expect(await entries()).toHaveLength(4)
  expect(await journal.auditEntries({ namespace: 'of-nobody' }, { limit: 5 })).toEqual([])
})

test('the next leader finds the changes that were made while there was no leader', async () => {
  const { metadata } = await tunnel('web')
  const first = await looking()
  await untilThere('nobody unknown create Tunnel web 1')
  await first.stop()
  await store.mergePatch(Tunnel, metadata, { spec: { config: { httpsOnly: true } } })
  await looking()
  await untilThere('nobody unknown update Tunnel web 2')
  expect(await entries()).toHaveLength(2)
})

test('the journal is not queried while only statuses change', async () => {
  const questions: (readonly unknown[])[] = []
  const counting = {
    audit: journal.audit.bind(journal),
    audited: (changes: Parameters<Journal['audited']>[0]) => {
      questions.push(changes)
      return journal.audited(changes)
    },
  }
  const { metadata } = await tunnel('web')
  await tunnel('shop')
  await looking(counting)
  await untilThere('nobody unknown create Tunnel web 1', 'nobody unknown create Tunnel shop 1')
  await store.patchStatus(Tunnel, metadata, { sessions: 3 })
  await tunnel('last')
  await untilThere('nobody unknown create Tunnel last 1')
  expect(questions.map((changes) => changes.length)).toEqual([2, 1])
})

test('a query is repeated when the journal is unavailable', async () => {
  let away = true
  const sometimes = {
    audit: journal.audit.bind(journal),
    audited(changes: Parameters<Journal['audited']>[0]) {
      return away ? Promise.reject(new MooringError('journal_away', 'not now')) : journal.audited(changes)
    },
  }
  await tunnel('web')
  const { warnings } = await looking(sometimes)
  await vi.waitFor(() => expect(warnings.length).toBeGreaterThan(1), { timeout: 60_000 })
  away = false
  await untilThere('nobody unknown create Tunnel web 1')
})

test('while the journal is unavailable the oldest changes are dropped, and found again by a check of all objects', async () => {
  let away = true
  const sometimes = {
    audit: journal.audit.bind(journal),
    audited(changes: Parameters<Journal['audited']>[0]) {
      return away ? Promise.reject(new MooringError('journal_away', 'not now')) : journal.audited(changes)
    },
  }
  await tunnel('before')
  const { warnings, forgotten } = await looking(sometimes, 3)
  const names = Array.from({ length: 10 }, (_, index) => `web-${index}`)
  for (const name of names) await tunnel(name)
  const gone = await tunnel('gone')
  await store.delete(Tunnel, gone.metadata)
  await vi.waitFor(async () => expect(await forgotten()).toBe(9), { timeout: 60_000 })
  away = false
  const created = ['before', ...names].map((name) => `nobody unknown create Tunnel ${name} 1`)
  await untilThere(...created, 'nobody unknown delete Tunnel gone -')
  expect(warnings.filter((message) => message.startsWith('too many changes'))).toHaveLength(1)
  expect(warnings.filter((message) => message.startsWith('the journal is available again'))).toHaveLength(1)
  expect((await entries()).toSorted()).toEqual([...new Set(await entries())].toSorted())
})

test('the operator is the actor of expiries and of deletions with an owner; no entry has a hash of a password', async () => {
  const { metadata } = await tunnel('web')
  const owner = { apiVersion: 'mooring.dev/v1alpha1', kind: 'Tunnel', name: 'web', uid: metadata.uid }
  const sha256 = 'a'.repeat(64)
  const password = (name: string, expiresAt: string) => ({
    metadata: { name, namespace: NAMESPACE, ownerReferences: [owner] },
    spec: { tunnelRef: { name: 'web' }, sha256, expiresAt },
  })
  const over = await store.create(TunnelPassword, password('over', '2020-01-01T00:00:00Z'))
  await store.create(TunnelPassword, password('goes', '2099-01-01T00:00:00Z'))
  await store.create(ApiToken, {
    metadata: { name: 'token', namespace: NAMESPACE },
    spec: { displayName: 'CI', role: 'viewer', expiresAt: '2099-01-01T00:00:00Z', sha256 },
  })
  await looking()
  await untilThere('nobody unknown create ApiToken CI 1', 'nobody unknown create TunnelPassword goes 1')
  await store.delete(TunnelPassword, over.metadata)
  await untilThere('mooring unknown delete TunnelPassword over -')
  await recorded(metadata.uid, null, 'delete')
  await store.delete(Tunnel, metadata)
  await untilThere('mooring unknown delete TunnelPassword goes -')
  expect((await entries()).filter((entry) => entry.includes('delete Tunnel '))).toHaveLength(1)
  expect(JSON.stringify(await journal.auditEntries({ namespace: NAMESPACE }, { limit: 50 }))).not.toContain(sha256)
})

/** Backlog of the items 0 to n - 1, each due at the time of its number. */
function backlogOf(count: number): Backlog<number> {
  const backlog = new Backlog<number>()
  for (let item = 0; item < count; item += 1) backlog.add(item, item)
  return backlog
}

test.each([
  { does: 'nothing before its time', now: -1, most: 9, taken: [] },
  { does: 'the items that are due', now: 2, most: 9, taken: [0, 1, 2] },
  { does: 'the oldest items, up to the limit', now: 2, most: 2, taken: [0, 1] },
  { does: 'all items', now: 9, most: 9, taken: [0, 1, 2, 3] },
])('a backlog gives $does', ({ now, most, taken }) => {
  const backlog = backlogOf(4)
  expect(backlog.take(now, most)).toEqual(taken)
  expect(backlog.size).toBe(4 - taken.length)
})

test('items that are put back come first, and no item is given before their new time', () => {
  const backlog = backlogOf(4)
  const taken = backlog.take(1, 9)
  backlog.add(4, 4)
  backlog.putBack(taken, 7)
  expect(backlog.take(6, 9)).toEqual([])
  expect(backlog.take(7, 9)).toEqual([0, 1, 2, 3, 4])
})

test('trim drops the oldest items and counts them', () => {
  const backlog = backlogOf(10)
  expect([backlog.trim(10), backlog.trim(3), backlog.size]).toEqual([0, 7, 3])
  expect(backlog.take(9, 9)).toEqual([7, 8, 9])
})
