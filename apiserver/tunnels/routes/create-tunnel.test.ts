import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { annotations } from '../../../crds/names.ts'
import { Region } from '../../../crds/region.ts'
import { Tunnel, TunnelReason } from '../../../crds/tunnel.ts'
import { TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import { openTemporaryJournal } from '../../../test/support/journal/temporary-journal.ts'
import { notReady, type Decision, withCondition } from '../../../store/conditions.ts'
import type { Store } from '../../../store/port.ts'
import { codeOf, fieldsOf, serveRoutes, type ToyApp } from '../../../test/support/api/http-app.ts'
import { serveAcme, openTunnelDeps } from '../../../test/support/api/tenancy-app.ts'
import type { AuditedRequest } from '../../journal/audit.ts'
import { objectName } from '../../resources/creations.ts'
import { createTunnel } from './create-tunnel.ts'

/** `POST …/tunnels` in regions without an endpoint that accepts tunnels, and with rejections by the operator. */

const PATH = '/v1/organizations/acme/namespaces/prod/tunnels'
/** `regionId` of a region with an endpoint that accepts tunnels. */
const SERVED = 100
const REGIONS: readonly { does: string; regionId: number; endpoint?: object }[] = [
  { does: 'without an endpoint', regionId: 1 },
  { does: 'whose endpoint is not active', regionId: 2, endpoint: { active: false } },
  { does: 'whose endpoint has no edges', regionId: 3, endpoint: { replicas: 0 } },
]

const opened = new AsyncDisposableStack()
const recorded: AuditedRequest['action'][] = []
let store: Store
let given: Parameters<typeof openTunnelDeps>[1]
let app: ToyApp

beforeAll(async () => {
  const acme = opened.use(await serveAcme())
  const { journal } = opened.use(await openTemporaryJournal())
  ;({ store } = acme)
  for (const { regionId, endpoint } of [...REGIONS, { regionId: SERVED, endpoint: {} }]) await makeRegion(regionId, endpoint)
  const audit = { record: async ({ action }: AuditedRequest) => void recorded.push(action) }
  given = { store, scopes: acme.scopes, journal, audit }
  const deps = await openTunnelDeps(opened, given)
  app = opened.use(await serveRoutes([createTunnel(deps)]))
})
afterAll(() => opened.disposeAsync())

async function makeRegion(regionId: number, endpoint: object | undefined): Promise<void> {
  const [id, name] = [randomUUID(), `r${regionId}`]
  await store.create(Region, { metadata: { name }, spec: { id, regionId, name, motors: [] } })
  if (!endpoint) return
  const spec = { region: id, domain: `${name}.example`, sshHost: `${name}.example`, ...endpoint }
  await store.create(TunnelEndpoint, { metadata: { name }, spec })
}

const post = (regionId: number, headers = {}) =>
  app.call('POST', PATH, { token: 'editor', body: { name: 'web', regionId }, headers })

test.each(REGIONS)('a region $does is 422 no_active_endpoint, and nothing is left', async ({ regionId }) => {
  const answer = await post(regionId)
  expect([codeOf(answer), fieldsOf(answer)]).toEqual(['422 no_active_endpoint', ['regionId']])
  expect(answer.body.msg).toBe(`region ${regionId} has no active endpoint with edges`)
  expect([(await store.list(Tunnel)).items, recorded]).toEqual([[], []])
})

test('a tunnel that the operator rejects for the quota is 403 quota_exceeded, and is deleted', async () => {
  recorded.length = 0
  const watching = new AbortController()
  const message = 'the namespace has 50 tunnels, and may have 50: delete one, or ask for a higher quota'
  const refusing = rejectNext(watching.signal, notReady(TunnelReason.QuotaExceeded, message))
  const answer = await post(SERVED)
  watching.abort()
  const { metadata } = await refusing
  expect([codeOf(answer), answer.body.msg, fieldsOf(answer)]).toEqual(['403 quota_exceeded', message, []])
  expect((await store.get(Tunnel, metadata))?.metadata.deletionTimestamp).toBeDefined()
  expect(recorded).toEqual(['create', 'delete'])
})

test('a repeated Idempotency-Key finds its tunnel even if the caches do not have it', async () => {
  const key = randomUUID()
  const caches = new AsyncDisposableStack()
  const deps = await openTunnelDeps(caches, given)
  // From here on the caches get no changes.
  await caches.disposeAsync()
  await using late = await serveRoutes([createTunnel(deps)])
  const namespace = 'acme--prod'
  await store.create(Tunnel, {
    metadata: {
      ...{ namespace, name: objectName('t', { namespace, user: 'local:editor', key }) },
      annotations: { [annotations.requestHash]: 'of another body' },
    },
    spec: { regionId: 1 },
  })
  const body = { name: 'web', regionId: 1 }
  const answer = await late.call('POST', PATH, { token: 'editor', body, headers: { 'Idempotency-Key': key } })
  expect(codeOf(answer)).toBe('422 idempotency_key_reused')
})

const unserved = notReady(TunnelReason.NoActiveEndpoint, `region ${SERVED} has no active endpoint with edges`)

test.each([{}, { 'Idempotency-Key': 'once' }])(
  'a tunnel that the operator rejects for its endpoint is 422, and is deleted (%j)',
  async (headers) => {
    recorded.length = 0
    const watching = new AbortController()
    const refusing = rejectNext(watching.signal, unserved)
    const answer = await post(SERVED, headers)
    watching.abort()
    const { metadata } = await refusing
    expect([codeOf(answer), fieldsOf(answer)]).toEqual(['422 no_active_endpoint', ['regionId']])
    expect((await store.get(Tunnel, metadata))?.metadata.deletionTimestamp).toBeDefined()
    expect(recorded).toEqual(['create', 'delete'])
  },
)

/** Waits for the next tunnel and writes the operator's decision to its status. */
async function rejectNext(signal: AbortSignal, decision: Decision): Promise<Tunnel> {
  const { resourceVersion } = await store.list(Tunnel)
  for await (const event of store.watch(Tunnel, { resourceVersion, signal })) {
    if (event.type !== 'added') continue
    const conditions = withCondition([], decision, { type: 'Ready', generation: 1, now: new Date() })
    return store.patchStatus(Tunnel, event.object.metadata, { conditions })
  }
  throw new Error('no tunnel was made')
}
