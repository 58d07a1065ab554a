import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { codeOf, type Tunnel } from '../support/api/answers.ts'
import { type Mooring, startMooring } from '../support/deployment/mooring.ts'
import { visit } from '../support/edge/visitor.ts'
import { LATER } from '../support/patience.ts'

/** Effect of `--domain`, also on tunnels of the previous domain. */

const TUNNELS = '/v1/organizations/default/namespaces/default/tunnels'
const DOMAIN = 'tunnels.example'

const cleanup = new AsyncDisposableStack()
let former: Tunnel
let mooring: Mooring
beforeAll(async () => {
  const first = cleanup.use(await startMooring())
  former = await makeTunnel(first)
  first.process.kill('SIGKILL')
  mooring = cleanup.use(await startMooring({ dataDir: first.dataDir, args: ['--domain', DOMAIN] }))
})
afterAll(() => cleanup.disposeAsync())

async function makeTunnel(on: Mooring, config: object = {}): Promise<Tunnel> {
  const answer = await on.call('POST', TUNNELS, { body: { name: 'web', regionId: on.ready.regionId, config } })
  expect(codeOf(answer)).toBe('201 OK')
  return answer.body.data.tunnel
}

test('a new domain is in the URL and certificate of a tunnel and in the ready file', async () => {
  expect(mooring.ready.domain).toBe(DOMAIN)
  const { hostname, url, certificate, endpoint } = await makeTunnel(mooring)
  expect([url, certificate.domain, endpoint.domain]).toEqual([`https://${hostname}.${DOMAIN}`, `${hostname}.${DOMAIN}`, DOMAIN])
})

test('a tunnel of a domain that is no longer served keeps its URL and has no connect command', async () => {
  const show = async () => (await mooring.call('GET', `${TUNNELS}/${former.id}`)).body.data.tunnel
  await vi.waitFor(async () => expect((await show()).sshCommand).toBeNull(), LATER)
  expect(await show()).toMatchObject({ url: former.url, directUrl: null, certificate: former.certificate })
  const connect = await mooring.call('GET', `${TUNNELS}/${former.id}/connect`)
  expect([codeOf(connect), connect.body.msg]).toEqual([
    '409 conflict',
    'no edge serves tunnel.localhost any more; create another tunnel',
  ])
  await expect.poll(() => mooring.output(), LATER).toMatch(/"reason":"EndpointNotServed"/)
})

test('a visitor of an unknown host gets 404 unknown_host over HTTPS', async () => {
  const { hostname, endpoint } = await makeTunnel(mooring)
  const site = { hostname: hostname.replaceAll(/./g, '0'), endpoint }
  const answer = await visit(await readFile(mooring.ready.ca, 'utf8'), site)
  expect(answer).toMatchObject({ status: 404, headers: { 'mooring-error': 'unknown_host' } })
})

test('redirects name the port that the edge listens on', async () => {
  const tunnel = await makeTunnel(mooring, { httpsOnly: true })
  const answer = await visit(await readFile(mooring.ready.ca, 'utf8'), tunnel, '/a?b=c', { scheme: 'http' })
  const location = `https://${tunnel.hostname}.${DOMAIN}:${mooring.ready.httpsPort}/a?b=c`
  expect(answer).toMatchObject({ status: 301, headers: { location } })
})

test('the metrics have the expiry of certificates and no hostname of a tunnel', async () => {
  const { hostname } = await makeTunnel(mooring)
  const metrics = await (await fetch(mooring.ready.metricsUrl)).text()
  const [, expiry] = /^mooring_certificate_expiry_timestamp_seconds\{of="tunnels"\} (\S+)$/m.exec(metrics) ?? []
  expect(Number(expiry) * 1_000).toBeGreaterThan(Date.now())
  expect(metrics).toMatch(/^mooring_tunnels\{certificate="valid"\} \d+$/m)
  expect(metrics).not.toContain(hostname)
})
