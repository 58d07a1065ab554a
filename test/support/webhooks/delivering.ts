import { Registry } from 'prom-client'
import { Namespace } from '../../../crds/core.ts'
import { ownerReferenceTo } from '../../../crds/kind.ts'
import { TunnelWebhook } from '../../../crds/tunnel-webhook.ts'
import { Tunnel } from '../../../crds/tunnel.ts'
import { createDeliverer } from '../../../operator/webhooks/deliverer.ts'
import { createLastEvents } from '../../../operator/webhooks/last-events.ts'
import { SLOTS } from '../../../operator/webhooks/slots.ts'
import { webhookIndexes } from '../../../operator/webhooks/indexes.ts'
import { createAddressGuard } from '../../../shared/outside-addresses.ts'
import type { SqliteJournal } from '../../../journal/sqlite.ts'
import type { EmbeddedStore } from '../../../store/embedded.ts'
import { createWebhookSecrets } from '../../../shared/webhook-secrets.ts'
import { type Cache, createCacheSet } from '../../../store/cache.ts'
import { connectionRecord, idAt } from '../../conformance/journal/records.ts'
import { openTemporaryJournal, silent } from '../journal/temporary-journal.ts'
import { openTemporaryStore } from '../store/temporary-store.ts'
import type { ConnectionRecord } from '../../../journal/port.ts'
import type { WebhookOutbox } from '../../../journal/webhooks.ts'

const NAMESPACE = 'acme--prod'
export const OTHER_NAMESPACE = 'globex--prod'
const guard = createAddressGuard({ privateAddresses: true })
export const secrets = createWebhookSecrets(Buffer.alloc(32, 7))

interface StartOptions {
  readonly mayAct?: () => boolean
  readonly timeoutMs?: number
  readonly limits?: typeof SLOTS
  /** Outbox in place of that of the shared journal. */
  readonly outbox?: WebhookOutbox
}

/** Opens a store, its caches and a journal, which the tests of a file share. */
export async function openDelivering() {
  const parts = new AsyncDisposableStack()
  const { store } = parts.use(await openTemporaryStore())
  const { journal } = parts.use(await openTemporaryJournal())
  const set = createCacheSet({ store, onError: () => undefined })
  const [tunnels, webhooks] = [set.cached(Tunnel), set.cached(TunnelWebhook, webhookIndexes)]
  const stop = new AbortController()
  const caching = set.run(stop.signal)
  parts.defer(async () => {
    stop.abort()
    await caching
  })
  for (const name of [NAMESPACE, OTHER_NAMESPACE]) await store.create(Namespace, { metadata: { name } })
  await set.synced()
  let made = 0
  return {
    /** Creates a tunnel, for deliverers that a test starts. */
    scope(namespace = NAMESPACE) {
      made += 1
      return openScope({ store, journal, tunnels, webhooks }, { namespace, name: `web-${made}` })
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  }
}
export type Delivering = Awaited<ReturnType<typeof openDelivering>>

interface TunnelKey {
  readonly namespace: string
  readonly name: string
}

interface Base {
  readonly store: EmbeddedStore
  readonly journal: SqliteJournal
  readonly tunnels: Cache<typeof Tunnel>
  readonly webhooks: Cache<typeof TunnelWebhook>
}

/** Opens the part of one test. Times are those that the test sets. Its deliverers end with its disposal. */
async function openScope({ store, journal, tunnels, webhooks }: Base, { namespace, name }: TunnelKey) {
  const parts = new AsyncDisposableStack()
  const stop = new AbortController()
  let passed = 0
  // The clock stands still between the steps of a test, however long they take. It is a minute ahead, so that no webhook is created after it.
  const begin = Date.now() + 60_000
  const now = () => new Date(begin + passed)
  const tunnel = await store.create(Tunnel, { metadata: { namespace, name }, spec: { regionId: 1 } })
  await tunnels.waitFor({ namespace, name }, (found) => found, stop.signal)
  const uid = tunnel.metadata.uid

  const record = (about: Partial<ConnectionRecord> = {}) => connectionRecord({ tunnel: uid, at: now().getTime(), ...about })

  const lastEvents = createLastEvents({ outbox: journal.webhooks, journal, webhooks, guard, now })

  /** Wakes the deliverers, as any record does. */
  const wake = () => journal.connection(record({ type: 'refused', authMethod: null }))

  return {
    ...{ store, journal, uid, now, wake },
    outbox: journal.webhooks,
    /** Advances the time. */
    async pass(ms: number) {
      passed += ms
      await wake()
    },
    /** Records a connect. */
    async connect(about: Partial<ConnectionRecord> = {}): Promise<ConnectionRecord> {
      const made = record(about)
      await journal.connection(made)
      return made
    },
    /** Records the disconnect of a session. */
    async disconnect(session: ConnectionRecord): Promise<void> {
      await journal.connection({ ...session, id: idAt(session.at), type: 'disconnect', reason: 'client_closed', durationMs: 1 })
    },
    /** Creates a webhook, and waits until the cache has it. */
    async subscribe(url: string, spec: object = {}): Promise<TunnelWebhook> {
      const key = { namespace, name: `w-${webhooks.list().length}` }
      const metadata = { ...key, ownerReferences: [ownerReferenceTo(Tunnel, tunnel)] }
      const made = await store.create(TunnelWebhook, { metadata, spec: { tunnelRef: { name }, url, ...spec } })
      await webhooks.waitFor(key, (found) => found, stop.signal)
      return made
    },
    /** Checks whether events are left of the tunnel, which was deleted at this time. */
    lastEvents: (deletedAt: Date) =>
      lastEvents({ ...tunnel, metadata: { ...tunnel.metadata, deletionTimestamp: deletedAt.toISOString() } }),
    statusOf: async ({ metadata }: TunnelWebhook) => (await store.get(TunnelWebhook, metadata))?.status,
    deliveries: ({ metadata }: TunnelWebhook) => journal.webhooks.list(metadata.uid, { limit: 1_000 }),
    /** Starts a deliverer. Returns the function that stops it. */
    start({ mayAct, timeoutMs = 60_000, limits = SLOTS, outbox = journal.webhooks }: StartOptions = {}): () => Promise<void> {
      const over = new AbortController()
      const deliverer = createDeliverer({
        ...{ store, outbox, tunnels, webhooks, secrets, now, mayAct, timeoutMs, limits },
        ...{ registry: new Registry(), log: silent, random: () => 0.5 },
        guard,
      })
      const running = deliverer.run(AbortSignal.any([over.signal, stop.signal]))
      parts.defer(() => running)
      return async () => {
        over.abort()
        await running
      }
    },
    async [Symbol.asyncDispose]() {
      stop.abort()
      await parts.disposeAsync()
    },
  }
}
