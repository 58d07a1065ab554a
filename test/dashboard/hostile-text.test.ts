import { request } from 'node:https'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type DashboardBrowser, openDashboardBrowser, type WatchedPage } from '../support/browser/dashboard-browser.ts'
import { startShopServer } from '../support/browser/shop-server.ts'
import { openDeployment } from '../support/deployment/deployment.ts'
import { expectSuccess, regionId, type Tenant } from '../support/api/tenant.ts'
import type { Tunnel } from '../support/api/answers.ts'
import { person } from '../support/edge/openssh.ts'
import { LATER } from '../support/patience.ts'

/** Text of visitors, clients and other users stays text on each page that shows it. */

/** Would run on any page that makes markup of it. */
const MARKUP = `"><img src=x onerror=pwned=1><svg onload=pwned=1>`
/** Would turn around the text behind it. */
const REVERSED = '\u202e'
const deployment = openDeployment()
const cleanup = new AsyncDisposableStack()
const { ca } = deployment.installation
let acme: Tenant
let browser: DashboardBrowser
let page: WatchedPage
let tunnel: Tunnel
beforeAll(async () => {
  acme = await deployment.namespace()
  const user = cleanup.use(await person())
  const { port } = cleanup.use(await startShopServer())
  browser = cleanup.use(await openDashboardBrowser(deployment.installation))
  // An identity provider chooses the name of the user.
  const token = await deployment.tokens.mint({ subject: `${MARKUP}${randomUUID()}`, namespace: acme.home, role: 'editor' })
  const config = {
    authorizedKeys: [`${user.publicKey.split(' ').slice(0, 2).join(' ')} ${MARKUP}`],
    liveHeaderModifications: [{ name: 'X-Markup', value: MARKUP, type: 'request' }],
  }
  const body = { name: REVERSED + MARKUP, regionId: await regionId(deployment.call), config }
  tunnel = (await expectSuccess(deployment.call('POST', `${acme.path}/tunnels`, { token, body }))).body.data.tunnel
  await expectSuccess(deployment.call('POST', `${acme.path}/tunnels/${tunnel.id}/passwords`, { token }))
  await user.forward(tunnel, port)
  page = await browser.signedIn(token)
})
afterAll(async () => {
  await cleanup.disposeAsync()
  await deployment[Symbol.asyncDispose]()
})

/** Sends a request as it is, with any bytes that a client may send. Resolves with its status. */
function send(path: string, method: string): Promise<number> {
  const { endpoint, hostname } = tunnel
  const host = `${hostname}.${endpoint.domain}`
  const about = { ca, method, path, host: endpoint.sshHost, port: endpoint.httpsPort, servername: host, agent: false as const }
  return new Promise((resolve, reject) => {
    const headers = { Host: host, 'User-Agent': MARKUP, Referer: MARKUP, 'X-Forwarded-For': MARKUP }
    request({ ...about, headers }, (res) => {
      res.resume()
      resolve(res.statusCode ?? 0)
    })
      .on('error', reject)
      .end()
  })
}

/** Expects that the text is on the page, and that no element was made of it and no script of it ran. */
async function expectText(text: string): Promise<void> {
  await page.getByText(text).first().waitFor()
  const made = await page.evaluate(
    `[typeof pwned, document.querySelectorAll('img, [onload], [onerror], script:not([src])').length]`,
  )
  expect(made).toEqual(['undefined', 0])
  page.expectNoFaults()
}

const open = (...rest: readonly string[]) =>
  page.goto(`${deployment.installation.sharedUrl}/dashboard/o/${acme.organization}/prod/${rest.join('/')}`)

test('paths and methods of visitors, in the live tail and its details', async () => {
  await vi.waitFor(async () => expect(await send('/', 'GET')).toBe(200), LATER)
  await open('tunnels', tunnel.hostname, 'requests')
  await page.getByText('live', { exact: true }).waitFor()
  // What the edge lets through unescaped is shown as it is; the rest arrives escaped.
  const paths = [
    `/'%3Cimg%20src=x%20onerror=pwned=1%3E`,
    `/javascript:pwned=1//&lt;img&gt;`,
    `/{{constructor.constructor('pwned=1')()}}`,
  ]
  for (const path of paths) await send(path, `GET'*`)
  await send(`/<img/src=x/onerror=pwned=1>`, 'GET')
  const listed = () => expectSuccess(acme.as('viewer')('GET', `${acme.path}/tunnels/${tunnel.id}/requests`))
  // The edge records a request after its response.
  const requests = await vi.waitFor(async () => {
    const found = (await listed()).body.data.requests
    expect(found.length).toBeGreaterThan(paths.length + 1)
    return found
  }, LATER)
  for (const { path } of requests) {
    await page.getByRole('button', { name: path, exact: true }).first().click()
    await page.getByRole('complementary', { name: 'Details of the request' }).getByText(path, { exact: true }).waitFor()
    await expectText('Protocol')
  }
})

test.each([
  ['the list of tunnels', [], `‹U+202E›${MARKUP}`],
  ['the overview', ['overview'], 'Top client addresses'],
  ['the settings', ['settings'], 'Headers to set'],
  ['the passwords', ['passwords'], MARKUP],
  ['the connections', ['connections'], 'SHA256:'],
  ['the audit log', ['audit'], MARKUP],
])('names of tunnels and users, in %s', async (_where, tab, text) => {
  await open('tunnels', ...(tab.length > 0 ? [tunnel.hostname, ...tab] : []))
  await expectText(text)
  if (tab[0] !== 'audit') return
  await page.getByText('fields').first().click()
  await expectText('onerror')
})

test('a name in the question before a deletion, and errors that quote the input', async () => {
  await open('tunnels', tunnel.hostname, 'explain')
  await page.getByLabel('Path').fill(`/${MARKUP}`)
  await page.getByRole('button', { name: 'Explain' }).click()
  await expectText('This must begin with /')
  await page.getByRole('button', { name: 'Delete' }).click()
  await expectText(`Delete ‹U+202E›${MARKUP}?`)
})
