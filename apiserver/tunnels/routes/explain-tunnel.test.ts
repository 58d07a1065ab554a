import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { MooringError } from '../../../shared/errors.ts'
import { Tunnel } from '../../../crds/tunnel.ts'
import type { JournalReader } from '../../../journal/port.ts'
import { codeOf, serveRoutes, type ToyApp } from '../../../test/support/api/http-app.ts'
import { serveAcme, openTunnelDeps } from '../../../test/support/api/tenancy-app.ts'
import { explainTunnel } from './explain-tunnel.ts'

/** `POST …/explain` with several states of the journal. */

const opened = new AsyncDisposableStack()
let presence: JournalReader['presence']
let app: ToyApp
let path: string

beforeAll(async () => {
  const { store, scopes } = opened.use(await serveAcme())
  const metadata = { name: 'web', namespace: 'acme--prod', uid: randomUUID() }
  const tunnel = await store.create(Tunnel, { metadata, spec: { regionId: 1, displayName: 'web', config: {} } })
  await store.patchStatus(Tunnel, { name: 'web', namespace: 'acme--prod' }, { connected: true, sessions: 2 })
  path = `/v1/organizations/acme/namespaces/prod/tunnels/${tunnel.metadata.uid}/explain`
  const journal: Pick<JournalReader, 'presence'> = { presence: (ids) => presence(ids) }
  const deps = await openTunnelDeps(opened, { store, scopes, journal, audit: { record: async () => undefined } })
  app = opened.use(await serveRoutes([explainTunnel(deps)]))
})
afterAll(() => opened.disposeAsync())

const explain = () => app.call('POST', path, { token: 'editor', body: { sourceIp: '203.0.113.7' } })

test.each<{ source: string; journal: string; presence: JournalReader['presence']; answer: object }>([
  {
    source: 'the journal',
    journal: 'responds',
    presence: () => Promise.resolve(new Map()),
    answer: { status: 503, reason: 'tunnel_offline' },
  },
  {
    source: 'the status of the tunnel',
    journal: 'is unavailable',
    presence: () => Promise.reject(new MooringError('journal_away', 'the journal cannot be read now')),
    answer: { status: null, reason: null },
  },
  {
    source: 'the status of the tunnel',
    journal: 'does not respond',
    presence: () => new Promise(() => undefined),
    answer: { status: null, reason: null },
  },
])('explain uses $source, without a long wait, when the journal $journal', async ({ presence: said, answer }) => {
  presence = said
  const explained = await explain()
  expect([codeOf(explained), explained.body.data?.answer]).toEqual(['200 OK', answer])
})
