import { once } from 'node:events'
import { createServer } from 'node:http'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openSqliteJournal } from '../../../journal/sqlite.ts'
import { requestRecord } from '../../conformance/journal/records.ts'
import { expectSuccess } from '../../support/api/tenant.ts'
import type { Tunnel } from '../../support/api/answers.ts'
import { type DashboardBrowser, openDashboardBrowser, type WatchedPage } from '../../support/browser/dashboard-browser.ts'
import { screenshot } from '../../support/browser/screenshots.ts'
import { type Mooring, startMooring } from '../../support/deployment/mooring.ts'
import { person } from '../../support/edge/openssh.ts'
import { LATER } from '../../support/patience.ts'

/** Embedded Mooring with a day of requests in its journal, opened by the link that it prints. */

const TUNNELS = '/v1/organizations/default/namespaces/default/tunnels'
const MINUTE_MS = 60_000
const DAY_MINUTES = 1_440
const ADDRESSES = ['203.0.113.7', '198.51.100.23', '2001:db8::4a1', '192.0.2.91', '203.0.113.44']
const STATUSES = [200, 200, 200, 200, 304, 200, 200, 404, 200, 200, 200, 301, 200, 200, 200, 200, 500, 200, 200, 200]
const cleanup = new AsyncDisposableStack()
let mooring: Mooring
let browser: DashboardBrowser
let tunnel: Tunnel
let count = 0
beforeAll(async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'mooring-day-'))
  cleanup.defer(() => rm(dataDir, { recursive: true, force: true }))
  const user = cleanup.use(await person())
  await using first = await startMooring({ dataDir })
  const body = { name: 'Shop', regionId: first.ready.regionId, config: { authorizedKeys: [user.publicKey] } }
  tunnel = (await expectSuccess(first.call('POST', TUNNELS, { body }))).body.data.tunnel
  await first[Symbol.asyncDispose]()
  await recordDay(join(dataDir, 'journal.db'))

  mooring = cleanup.use(await startMooring({ dataDir }))
  const ca = await readFile(mooring.ready.ca, 'utf8')
  browser = cleanup.use(await openDashboardBrowser({ sharedUrl: mooring.ready.sharedUrl, ca }))
  tunnel = (await expectSuccess(mooring.call('GET', `${TUNNELS}/${tunnel.id}`))).body.data.tunnel
  await user.forward(tunnel, 9)
})
afterAll(() => cleanup.disposeAsync())

/** Records the requests of the last 24 hours: few by night, many by day, some of them failed. */
async function recordDay(path: string): Promise<void> {
  await using journal = await openSqliteJournal({ path, log: pino({ level: 'silent' }) })
  const begin = Math.floor(Date.now() / MINUTE_MS - DAY_MINUTES + 20) * MINUTE_MS
  for (let minute = 0; minute < DAY_MINUTES - 20; minute++) {
    const busy = 2 + Math.round(9 * (1 - Math.cos((2 * Math.PI * minute) / DAY_MINUTES)) + 3 * Math.sin(minute / 17) ** 2)
    for (let index = 0; index < busy; index++, count++) {
      const [status = 200, sourceIp = ''] = [
        STATUSES[(count * 7) % STATUSES.length],
        ADDRESSES[((count * count) % 17) % ADDRESSES.length],
      ]
      const sizes = { durationMs: 12 + ((count * 37) % 90), bytesIn: 420, bytesOut: 9_000 + ((count * 997) % 60_000) }
      journal.request(
        requestRecord({ tunnel: tunnel.id, at: begin + minute * MINUTE_MS + index * 1_000, status, sourceIp, ...sizes }),
      )
    }
    if (minute % 100 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
}

async function opened(colorScheme: 'light' | 'dark' = 'light'): Promise<WatchedPage> {
  const page = await browser.page({ colorScheme, viewport: { width: 1280, height: 1010 } })
  await page.goto(mooring.ready.sharedUrl + '/dashboard')
  await page.getByLabel('Token').fill(mooring.ready.token)
  await page.getByLabel('Token').press('Enter')
  await page.waitForURL('**/tunnels')
  return page
}

test('the link opens the namespace and leaves no code in the address; used again, it asks for a token', async () => {
  const page = await browser.page()
  const asked: string[] = []
  page.on('request', (request) => asked.push(`${request.url()} ${JSON.stringify(request.headers())}`))
  await page.goto(mooring.ready.dashboardUrl)
  await page.waitForURL('**/dashboard/o/default/default/tunnels')
  // Plain HTTP, so that no certificate warning comes first. The browser keeps the cookie nevertheless.
  expect(page.url()).toMatch(/^http:\/\/dashboard\.localhost:/)
  await page.reload()
  await page.getByRole('heading', { name: 'Tunnels' }).waitFor()
  const code = mooring.ready.dashboardUrl.replace(/.*#code=/, '')
  expect(asked.filter((request) => request.includes(code))).toEqual([])
  expect(await page.evaluate('location.href + document.referrer')).not.toContain(code)
  page.expectNoFaults()

  const late = await browser.page()
  await late.goto(mooring.ready.dashboardUrl)
  await late.getByText('this link was used before or is too old').waitFor()
  expect(late.url()).not.toContain(code)
})

test('a page of a tunnel or a dev server can neither read, plant nor use the session', async () => {
  const cookies: string[] = []
  const planted = '__Host-mooring-session=planted; Path=/; Secure'
  await using dev = createServer((req, res) => {
    cookies.push(req.headers.cookie ?? '')
    res.setHeader('Set-Cookie', [planted, `${planted}; Domain=localhost`, `${planted}; Domain=dashboard.localhost`])
    res.setHeader('Content-Type', 'text/html').end('<p>Dev server</p>')
  }).listen(0, '127.0.0.1')
  await once(dev, 'listening')
  const { port } = dev.address() as AddressInfo

  const page = await browser.page()
  const { origin } = new URL(mooring.ready.dashboardUrl)
  await page.goto(`${origin}/dashboard`)
  await page.getByLabel('Token').fill(mooring.ready.token)
  await page.getByLabel('Token').press('Enter')
  await page.waitForURL('**/tunnels')
  const [session] = await page.context().cookies(origin)
  expect(session).toMatchObject({ name: '__Host-mooring-session', httpOnly: true, secure: true, sameSite: 'Strict' })

  for (const host of ['127.0.0.1', 'localhost', `0123456789abcdef.${mooring.ready.domain}`]) {
    const foreign = await page.context().newPage()
    await foreign.goto(`http://${host}:${port}/dashboard`)
    for (const domain of ['', '; Domain=localhost', '; Domain=dashboard.localhost'])
      await foreign.evaluate(`document.cookie = ${JSON.stringify(planted + domain)}`)
    const read = `fetch(${JSON.stringify(`${origin}/dashboard/v1/me`)}, { credentials: 'include' }).then((answer) => answer.text(), String)`
    expect(await foreign.evaluate(read), host).toContain('TypeError')
    const used = `fetch('${origin}/dashboard${TUNNELS}', { method: 'POST', mode: 'no-cors', credentials: 'include', body: '{"name":"x"}' }).then(String, String)`
    await foreign.evaluate(used)
    await foreign.close()
  }
  expect(cookies.filter((cookie) => cookie.includes(session?.value ?? 'planted'))).toEqual([])
  expect(await page.context().cookies(origin)).toEqual([session])
  await page.reload()
  await page.getByRole('heading', { name: 'Tunnels' }).waitFor()
  expect((await expectSuccess(mooring.call('GET', TUNNELS))).body.data.tunnels).toHaveLength(1)
  dev.closeAllConnections()
})

test.each(['light', 'dark'] as const)('the overview shows the day, in %s', async (colorScheme) => {
  const page = await opened(colorScheme)
  await page.goto(`${mooring.ready.sharedUrl}/dashboard/o/default/default/tunnels/${tunnel.hostname}`)
  const summary = page.getByRole('img', { name: `Requests over time: ${count} in all` })
  await summary.waitFor()
  await page.getByRole('heading', { name: 'Shop connected' }).waitFor()
  await vi.waitFor(
    async () => expect(await page.getByRole('region', { name: 'Top client addresses' }).textContent()).toContain('2001:db8::4a1'),
    LATER,
  )
  await screenshot(page, colorScheme === 'dark' ? 'overview-dark' : 'overview')
  page.expectNoFaults()
})
