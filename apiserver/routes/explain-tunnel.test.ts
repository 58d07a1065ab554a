import { afterAll, beforeAll, expect, test } from 'vitest'
import { randomUUID } from 'node:crypto'
import { MooringError } from '../../crds/errors.ts'
import { Region } from '../../crds/region.ts'
import { Tunnel } from '../../crds/tunnel.ts'
import { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { TunnelPassword } from '../../crds/tunnel-password.ts'
import type { JournalReader } from '../../journal/port.ts'
import { createCacheSet } from '../../store/cache-set.ts'
import { codeOf } from '../../test/support/http-app.ts'
import { serveAcme } from '../../test/support/tenancy-app.ts'
import { serveRoutes, type ToyApp } from '../../test/support/toy-app.ts'
import { createTunnelDeps, TUNNELS_PER_NAMESPACE } from '../tunnel-deps.ts'
import { explainTunnel } from './explain-tunnel.ts'

/** `POST …/explain` while the journal cannot say who is connected. */

const opened = new AsyncDisposableStack()
let presence: JournalReader['presence']
let app: ToyApp
let path: string

beforeAll(async () => {
  const { store, scopes } = opened.use(await serveAcme())
  const set = createCacheSet({ store, onError: (error) => expect.fail(String(error)) })
  const [regions, endpoints] = [set.cached(Region), set.cached(TunnelEndpoint)]
  const [tunnels, tunnelPasswords] = [set.cached(Tunnel), set.cached(TunnelPassword)]
  const metadata = { name: 'web', namespace: 'acme--prod', uid: randomUUID() }
  const tunnel = await store.create(Tunnel, { metadata, spec: { regionId: 1, displayName: 'web', config: {} } })
  await store.patchStatus(Tunnel, { name: 'web', namespace: 'acme--prod' }, { connected: true, sessions: 2 })
  path = `/v1/organizations/acme/namespaces/prod/tunnels/${tunnel.metadata.uid}/explain`
  const stop = new AbortController()
  const running = set.run(stop.signal)
  opened.defer(async () => {
    stop.abort()
    await running
  })
  await set.synced()
  const deps = createTunnelDeps({
    ...{ store, scopes, regions, endpoints, tunnels, tunnelPasswords },
    journal: { presence: (ids) => presence(ids) },
    audit: { record: async () => undefined },
    ...{ tokenSecret: new Uint8Array(32), tunnelsPerNamespace: TUNNELS_PER_NAMESPACE, now: () => new Date() },
  })
  app = opened.use(await serveRoutes([explainTunnel(deps)]))
})
afterAll(() => opened.disposeAsync())

const explain = () => app.call('POST', path, { token: 'editor', body: { sourceIp: '203.0.113.7' } })

test.each<{ does: string; presence: JournalReader['presence']; answer: object }>([
  {
    does: 'one that is there is believed before the status',
    presence: () => Promise.resolve(new Map()),
    answer: { status: 503, reason: 'tunnel_offline' },
  },
  {
    does: 'while it cannot be read, the status says that a client is connected',
    presence: () => Promise.reject(new MooringError('journal_away', 'the journal cannot be read now')),
    answer: { status: null, reason: null },
  },
  {
    does: 'one that does not answer is waited for no longer than elsewhere',
    presence: () => new Promise(() => undefined),
    answer: { status: null, reason: null },
  },
])('a journal: $does', async ({ presence: said, answer }) => {
  presence = said
  const explained = await explain()
  expect([codeOf(explained), explained.body.data?.answer]).toEqual(['200 OK', answer])
})
