import { afterAll, beforeAll, expect, test } from 'vitest'
import { Namespace } from '../../crds/core.ts'
import { Tunnel } from '../../crds/tunnel.ts'
import { auditRecord, connectionRecord, requestRecord } from '../../test/conformance/journal/records.ts'
import { keepRequests } from '../../test/conformance/journal/test-journal.ts'
import { openTemporaryJournal, type TemporaryJournal } from '../../test/support/journal/temporary-journal.ts'
import { createCache } from '../../store/cache.ts'
import { codeOf, fieldsOf, serveRoutes, type ToyApp } from '../../test/support/api/http-app.ts'
import { serveAcme } from '../../test/support/api/tenancy-app.ts'
import { tunnelLookupIndexes } from '../tunnels/tunnel-lookup.ts'
import { journalRoutes } from '../tunnels/routes/tunnels.ts'

const HOSTNAME = '0123456789abcdef'
const PROD = '/v1/organizations/acme/namespaces/prod'
const NOW = new Date()

const stop = new AbortController()
let acme: Awaited<ReturnType<typeof serveAcme>>
let kept: TemporaryJournal
let app: ToyApp
let tunnel: Tunnel
let path: string

beforeAll(async () => {
  acme = await serveAcme()
  kept = await openTemporaryJournal()
  const tunnels = createCache({ store: acme.store, kind: Tunnel, indexes: tunnelLookupIndexes })
  void tunnels.run(stop.signal)
  app = await serveRoutes(journalRoutes({ ...acme, ...kept, tunnels, now: () => NOW }))
  tunnel = await acme.store.create(Tunnel, { metadata: { namespace: 'acme--prod', name: 'web' }, spec: { regionId: 1 } })
  await acme.store.patchStatus(Tunnel, tunnel.metadata, { hostname: HOSTNAME })
  await tunnels.waitFor(tunnel.metadata, (found) => found?.status?.hostname, AbortSignal.timeout(60_000))
  path = `${PROD}/tunnels/${tunnel.metadata.uid}`
})
afterAll(async () => {
  stop.abort()
  await app[Symbol.asyncDispose]()
  await kept[Symbol.asyncDispose]()
  await acme[Symbol.asyncDispose]()
})

const HIDDEN = ['tunnel', 'namespace', 'edge', 'generation']

/** Converts a record to its view: with its timestamp, without its tunnel. */
function shown(record: { readonly at: number } | undefined): object {
  const { at = 0, ...rest } = record ?? {}
  const ofView = Object.entries(rest).filter(([field]) => !HIDDEN.includes(field))
  return { timestamp: new Date(at).toISOString(), ...Object.fromEntries(ofView) }
}

const get = (place: string, token = 'viewer') => app.call('GET', place, { token })

test('the request log has pages, newest first, by id or hostname of the tunnel', async () => {
  const records = Array.from({ length: 5 }, (_, index) => requestRecord({ tunnel: tunnel.metadata.uid, path: `/page/${index}` }))
  await keepRequests(kept.journal, records)
  const first = await get(`${path}/requests?limit=3&pathPrefix=/page/`)
  const { requests, nextCursor } = first.body.data as { requests: { id: string }[]; nextCursor: string }
  expect(requests.map(({ id }) => id)).toEqual(
    records
      .map(({ id }) => id)
      .reverse()
      .slice(0, 3),
  )
  expect(requests[0]).toEqual(shown(records[4]))
  const second = await get(`${PROD}/tunnels/${HOSTNAME}/requests?limit=3&pathPrefix=/page/&cursor=${nextCursor}`)
  const last = second.body.data as { requests: { id: string }[]; nextCursor: null }
  expect([...requests, ...last.requests].map((request) => request.id)).toEqual(records.map((record) => record.id).reverse())
  expect(last.nextCursor).toBeNull()
})

test('every parameter filters the request log', async () => {
  const at = Date.now() - 60_000
  const wanted = {
    method: 'PUT',
    path: '/s/x',
    status: 502,
    origin: 'edge',
    reason: 'upstream_reset',
    sourceIp: '2001:db8::7',
  } as const
  await keepRequests(kept.journal, [
    requestRecord({ tunnel: tunnel.metadata.uid, at, ...wanted }),
    requestRecord({ tunnel: tunnel.metadata.uid }),
  ])
  const span = `from=${new Date(at).toISOString()}&to=${new Date(at + 1).toISOString()}`
  const query = `method=PUT&status=502&statusClass=5xx&sourceIp=2001:DB8:0::7&pathPrefix=/s/&origin=edge&reason=upstream_reset&${span}`
  expect((await get(`${path}/requests?${query}`)).body.data).toMatchObject({
    requests: [wanted],
    nextCursor: null,
  })
  expect((await get(`${path}/requests?${query}&status=502`)).status).toBe(400)
})

test.each([
  ['requests?status=99', 'status'],
  ['requests?status=abc', 'status'],
  ['requests?statusClass=6xx', 'statusClass'],
  ['requests?sourceIp=localhost', 'sourceIp'],
  ['requests?from=yesterday', 'from'],
  ['requests?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z', 'to'],
  ['requests?origin=me', 'origin'],
  ['requests?follow=yes', 'follow'],
  ['requests?follow=true&sample=0', 'sample'],
  ['requests?sample=200', 'sample'],
  ['requests?cursor=nonsense', 'cursor'],
  ['requests?follow=false&cursor=nonsense', 'cursor'],
  ['requests?follow=true&cursor=nonsense', 'cursor'],
  ['requests?follow=true&to=2026-01-01T00:00:00Z', 'to'],
  ['requests?unknown=1', 'unknown'],
  ['requests?method=get', 'method'],
  ['requests?method=', 'method'],
  ['requests?method=GET%20', 'method'],
  ['requests?reason=IP_DENIED', 'reason'],
  ['requests?reason=', 'reason'],
  ['requests?status=404&statusClass=5xx', 'statusClass'],
  ['requests?pathPrefix=/a?b', 'pathPrefix'],
  ['connections?type=Connect', 'type'],
  ['connections?type=refused', 'type'],
  ['connections?include=all', 'include'],
  ['stats?window=2h', 'window'],
])('%s is rejected, and the error names %s', async (query, field) => {
  const answer = await get(`${path}/${query}`)
  expect([codeOf(answer), fieldsOf(answer)]).toEqual(['400 invalid_request', [field]])
})

test('connections are listed as recorded, rejected logins on request', async () => {
  const { uid } = tunnel.metadata
  const connect = connectionRecord({ tunnel: uid, clientIp: '198.51.100.7' })
  const refused = connectionRecord({
    tunnel: uid,
    type: 'refused',
    clientIp: '198.51.100.7',
    authMethod: null,
    reason: 'wrong_key',
  })
  await kept.journal.connection(connect)
  await kept.journal.connection(refused)
  expect((await get(`${path}/connections?clientIp=198.51.100.7`)).body.data).toEqual({
    connections: [shown(connect)],
    nextCursor: null,
  })
  const all = await get(`${path}/connections?include=refused&clientIp=198.51.100.7&limit=1`)
  expect(all.body.data).toMatchObject({ connections: [{ id: refused.id, type: 'refused', reason: 'wrong_key' }] })
})

test('a filter accepts an IPv4 address in its IPv6-mapped form', async () => {
  const { uid } = tunnel.metadata
  const connect = connectionRecord({ tunnel: uid, clientIp: '198.51.100.99' })
  const request = requestRecord({ tunnel: uid, sourceIp: '198.51.100.99' })
  await kept.journal.connection(connect)
  await keepRequests(kept.journal, [request])
  for (const address of ['198.51.100.99', '::ffff:198.51.100.99', '::FFFF:c633:6463', '0:0:0:0:0:ffff:198.51.100.99']) {
    const found = [
      (await get(`${path}/connections?clientIp=${address}`)).body.data?.connections,
      (await get(`${path}/requests?sourceIp=${address}`)).body.data?.requests,
    ]
    expect([address, found]).toMatchObject([address, [[{ id: connect.id }], [{ id: request.id }]]])
  }
})

test('stats cover whole minutes up to the end of this one', async () => {
  const { uid } = tunnel.metadata
  await keepRequests(kept.journal, [requestRecord({ tunnel: uid, at: NOW.getTime(), sourceIp: '192.0.2.77', status: 500 })])
  for (const [window, hours] of Object.entries({ '1h': 1, '24h': 24, '7d': 168 })) {
    const { stats } = (await get(`${path}/stats?window=${window}`)).body.data as { stats: { from: string; to: string } }
    expect(Date.parse(stats.to) - Date.parse(stats.from)).toBe(hours * 3_600_000)
    expect(Date.parse(stats.to) - NOW.getTime()).toBeLessThanOrEqual(60_000)
    expect(stats).toMatchObject({
      bandwidth: { bytesIn: expect.any(Number) as number },
      statusClasses: { '5xx': expect.any(Number) as number },
    })
  }
})

test('audit entries outlive their resources and are visible only in their namespace', async () => {
  const mine = auditRecord({ namespace: 'acme--prod', action: 'delete', actor: null, via: 'unknown' })
  await kept.journal.audit(mine)
  await kept.journal.audit(auditRecord({ namespace: 'acme--other' }))
  expect((await get(`${PROD}/audit`)).body.data).toEqual({ entries: [shown(mine)], nextCursor: null })
  expect((await get(`${PROD}/audit?kind=Tunnel&id=${mine.resource.id}&action=delete`)).body.data).toMatchObject({
    entries: [{ id: mine.id }],
  })
  expect((await get(`${PROD}/audit?actor=local:bob`)).body.data).toEqual({ entries: [], nextCursor: null })
})

test('a caller without a role in the namespace gets 404', async () => {
  await acme.store.create(Namespace, { metadata: { name: 'elsewhere' } })
  const other = await acme.store.create(Tunnel, { metadata: { namespace: 'elsewhere', name: 'x' }, spec: { regionId: 1 } })
  for (const what of ['requests', 'connections', 'stats', 'requests?follow=true']) {
    expect(codeOf(await get(`${PROD}/tunnels/${other.metadata.uid}/${what}`))).toBe('404 not_found')
    expect(codeOf(await get(`${path}/${what}`, 'eve'))).toBe('404 not_found')
  }
  expect(codeOf(await get(`${PROD}/audit`, 'eve'))).toBe('404 not_found')
})

/** Follows the log; `next` resolves with the data of the next event. */
async function follow(query = '', token = 'viewer', of = path) {
  const leave = new AbortController()
  const headers = { authorization: `Bearer ${token}` }
  const response = await fetch(`${app.url}${of}/requests?follow=true${query}`, { headers, signal: leave.signal })
  const chunks = (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]()
  let text = ''
  async function next(): Promise<{ readonly path?: string }> {
    for (;;) {
      const [, data] = /(?:^|\n)data: (.*)\n\n/.exec(text) ?? []
      if (data !== undefined) {
        text = text.slice(text.indexOf(data) + data.length)
        return JSON.parse(data) as { path?: string }
      }
      const { done, value } = await chunks.next()
      if (done) throw new Error('the stream has ended')
      text += value
    }
  }
  return { response, next, leave: () => leave.abort() }
}

test('a stream sends the requests that match its filters', async () => {
  const stream = await follow('&statusClass=5xx')
  expect(stream.response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  const { uid } = tunnel.metadata
  await keepRequests(kept.journal, [
    requestRecord({ tunnel: uid, path: '/good' }),
    requestRecord({ tunnel: uid, path: '/bad', status: 503 }),
  ])
  expect(await stream.next()).toMatchObject({ path: '/bad', status: 503 })
  stream.leave()
})

test('a sampled stream sends so many requests a second, and how many it skipped', async () => {
  const stream = await follow('&sample=2&pathPrefix=/many/')
  await keepRequests(
    kept.journal,
    Array.from({ length: 5 }, (_, index) => requestRecord({ tunnel: tunnel.metadata.uid, path: `/many/${index}` })),
  )
  expect([await stream.next(), await stream.next(), await stream.next()]).toMatchObject([
    { path: '/many/0' },
    { path: '/many/1' },
    { count: 3 },
  ])
  stream.leave()
})

test('a stream has no pages and accepts an end time', async () => {
  const { uid } = tunnel.metadata
  await keepRequests(kept.journal, [requestRecord({ tunnel: uid }), requestRecord({ tunnel: uid })])
  const { nextCursor } = (await get(`${path}/requests?limit=1`)).body.data as { nextCursor: string }
  const refused = await get(`${path}/requests?follow=true&cursor=${nextCursor}`)
  expect([codeOf(refused), fieldsOf(refused)]).toEqual(['400 invalid_request', ['cursor']])
  const stream = await follow(`&to=${new Date(NOW.getTime() + 3_600_000).toISOString()}`)
  expect(stream.response.status).toBe(200)
  stream.leave()
})

test('a stream ends soon after its end time, and when its tunnel is deleted', async () => {
  const { metadata } = await acme.store.create(Tunnel, {
    metadata: { namespace: 'acme--prod', name: 'short' },
    spec: { regionId: 1 },
  })
  const of = `${PROD}/tunnels/${metadata.uid}`
  await expect.poll(async () => (await get(`${of}/stats`)).status).toBe(200)
  const soon = await follow(`&to=${new Date(NOW.getTime() + 10).toISOString()}`, 'viewer', of)
  await expect(soon.next()).rejects.toThrow('the stream has ended')
  const long = await follow('', 'viewer', of)
  await acme.store.delete(Tunnel, metadata)
  await expect(long.next()).rejects.toThrow('the stream has ended')
})

test('HEAD of a stream takes no slot', async () => {
  const head = () => app.call('HEAD', `${path}/requests?follow=true`, { token: 'admin' })
  for (let count = 0; count < 12; count += 1) expect((await head()).status).toBe(200)
})

test('a principal has at most ten streams, and a new one after another has ended', async () => {
  const streams = []
  for (let count = 0; count < 10; count += 1) streams.push(await follow('', 'editor'))
  const eleventh = await get(`${path}/requests?follow=true`, 'editor')
  expect([codeOf(eleventh), eleventh.headers.get('retry-after')]).toEqual(['429 rate_limited', '5'])
  for (const { leave } of streams) leave()
  await expect
    .poll(async () => {
      const { response, leave } = await follow('', 'editor')
      leave()
      return response.status
    })
    .toBe(200)
})
