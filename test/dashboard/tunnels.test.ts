import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type DashboardBrowser, openDashboardBrowser, type WatchedPage } from '../support/browser/dashboard-browser.ts'
import { showPageOfFailures } from '../support/browser/failures.ts'
import { screenshot } from '../support/browser/screenshots.ts'
import { startShopServer } from '../support/browser/shop-server.ts'
import { openDeployment } from '../support/deployment/deployment.ts'
import { expectSuccess, type Tenant } from '../support/api/tenant.ts'
import type { Tunnel } from '../support/api/answers.ts'
import { person, type Person } from '../support/edge/openssh.ts'
import { visit } from '../support/edge/visitor.ts'
import { LATER } from '../support/patience.ts'

/** A user's way through the pages of a tunnel, in Chromium: from the form to the live tail, and to its deletion. The tests build on each other. */

const deployment = openDeployment()
const cleanup = new AsyncDisposableStack()
let acme: Tenant
let user: Person
let browser: DashboardBrowser
let page: WatchedPage
let localPort: number
let tunnel: Tunnel
beforeAll(async () => {
  acme = await deployment.namespace()
  user = cleanup.use(await person())
  localPort = cleanup.use(await startShopServer()).port
  browser = cleanup.use(await openDashboardBrowser(deployment.installation))
  page = await browser.signedIn(await acme.token('editor'))
})
showPageOfFailures(() => page)
afterAll(async () => {
  await cleanup.disposeAsync()
  await deployment[Symbol.asyncDispose]()
})

const go = (path: string) => visit(deployment.installation.ca, tunnel, path)
const readTunnel = async (): Promise<Tunnel> =>
  (await expectSuccess(acme.as('editor')('GET', `${acme.path}/tunnels/${tunnel.id}`))).body.data.tunnel
const openTab = (name: string) =>
  page.getByRole('navigation', { name: 'Parts of the tunnel' }).getByRole('link', { name }).click()
const rows = () => page.getByRole('region', { name: 'Requests' }).locator('tbody tr')

test('a new user makes a tunnel, connects it by the password on the page, and sees that it connects', async () => {
  await page.getByRole('heading', { name: 'Show what runs on your machine to the world' }).waitFor()
  await page.getByRole('link', { name: 'New tunnel' }).first().click()
  await page.getByLabel('Name', { exact: true }).fill('Shop')
  await page.getByRole('button', { name: 'Create tunnel' }).click()
  await page.getByRole('heading', { name: 'Waiting for your connection …' }).waitFor()
  await page.getByLabel('Port of your web server').fill(String(localPort))
  const command = await page.getByLabel('Command').textContent()
  expect(command).toContain(`:80:localhost:${localPort} `)
  await screenshot(page, 'connect')

  const password = (await page.getByLabel('Password', { exact: true }).textContent()) ?? ''
  expect(password).toMatch(/^mt_/)
  const { tunnels } = (await expectSuccess(acme.as('viewer')('GET', `${acme.path}/tunnels`))).body.data
  const [made] = tunnels
  if (!made) throw new Error('the tunnel was not made')
  tunnel = made
  await user.forward(tunnel, localPort, password)
  await page.getByRole('heading', { name: 'Connected', exact: true }).waitFor()
  await page.getByRole('link', { name: 'Go to the tunnel' }).click()
  await page.getByRole('heading', { name: 'Shop connected' }).waitFor()
  page.expectNoFaults()
})

test('the live tail shows requests as they are answered, follows filters, and pauses', async () => {
  await openTab('Live requests')
  await page.getByText('live', { exact: true }).waitFor()
  for (const path of ['/', '/products?page=2', '/cart/old', '/checkout/fail', '/.env', '/admin']) await go(path)
  await vi.waitFor(async () => expect(await rows().count()).toBe(6), LATER)
  expect(await rows().first().textContent()).toContain('/admin')
  await screenshot(page, 'requests')

  await rows().filter({ hasText: '/checkout/fail' }).getByRole('button').click()
  const details = page.getByRole('complementary', { name: 'Details of the request' })
  await expect(details.textContent()).resolves.toMatch(/Path\/checkout\/failStatus500Answered byyour server/)

  await page.getByLabel('Status').selectOption('4xx')
  await vi.waitFor(async () => expect(await rows().count()).toBe(2), LATER)
  await page.getByText('live', { exact: true }).waitFor()
  await go('/admin/again')
  await go('/fine')
  await vi.waitFor(async () => expect(await rows().first().textContent()).toContain('/admin/again'), LATER)
  expect(await rows().count()).toBe(3)

  await page.getByRole('button', { name: 'Pause' }).click()
  await go('/admin/paused')
  await page.getByRole('button', { name: 'Continue (1 new)' }).click()
  await vi.waitFor(async () => expect(await rows().first().textContent()).toContain('/admin/paused'), LATER)

  await page.getByLabel('Client address').fill('not an address')
  await page.getByRole('button', { name: 'Apply' }).click()
  await page.getByText('This must be an IP address.').waitFor()
  page.expectNoFaults()
})

test('a live tail that was refused connects again, and shows what it missed', async () => {
  let refusals = 1
  const STREAM = /requests\?.*follow=true/
  await page.route(STREAM, (route) => {
    refusals -= 1
    return refusals < 0 ? route.continue() : route.fulfill({ status: 503, json: { msg: 'starting' } })
  })
  await openTab('Overview')
  await openTab('Live requests')
  await page.getByText('interrupted, connecting again').waitFor()
  await go('/while/away')
  await page.getByText('live', { exact: true }).waitFor()
  await vi.waitFor(async () => expect(await rows().first().textContent()).toContain('/while/away'), LATER)
  await page.unroute(STREAM)
})

test('the overview shows numbers, a chart and the client addresses of each window', async () => {
  await openTab('Overview')
  const tile = (name: string) => page.getByRole('region', { name, exact: true })
  await vi.waitFor(async () => expect(await tile('Requests').textContent()).toContain('10'), LATER)
  expect(await tile('Status').textContent()).toMatch(/4xx\s*40 %/)
  expect(await tile('Average response').textContent()).toMatch(/\d (ms|s)/)
  expect(await tile('Bandwidth').textContent()).toMatch(/KiB/)
  expect(await tile('Top client addresses').textContent()).toContain('100 %')
  expect(await tile('Certificate').textContent()).toContain('valid')
  await tile('Certificate').getByText('History').click()
  await tile('Certificate').getByText('obtained', { exact: true }).waitFor()
  for (const window of ['1 h', '7 d', '24 h']) {
    await page.getByRole('button', { name: window }).click()
    await page.getByRole('img', { name: 'Requests over time: 10 in all, 1 of them with a status of 5xx' }).waitFor()
  }
  page.expectNoFaults()
})

test('settings are saved as a change of what differs, and errors show at their field', async () => {
  await openTab('Settings')
  await page.getByLabel('Addresses that may visit, one a line').fill('203.0.113.0/24\nnot-an-address')
  await page.getByRole('switch', { name: 'HTTPS only' }).check()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Line 2 must be').waitFor()
  await screenshot(page, 'settings')
  await page.getByLabel('Addresses that may visit, one a line').fill('')
  await page.getByRole('button', { name: 'Add a header' }).click()
  await page.getByLabel('Name of header 1').fill('Host')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Line 1, name, must not be a framing header').waitFor()
  await page.getByLabel('Name of header 1').fill('X-Shop')
  await page.getByLabel('Value of header 1').fill('1')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Saved. It is in force already.').waitFor()
  expect((await readTunnel()).config).toMatchObject({
    ...{ httpsOnly: true, ingressIPWhitelist: [] },
    liveHeaderModifications: [{ name: 'X-Shop', value: '1', type: 'request' }],
  })
  page.expectNoFaults()
})

test('settings of another user meanwhile are not overwritten', async () => {
  await page.getByLabel('Name', { exact: true }).fill('Mine')
  await expectSuccess(acme.as('editor')('PATCH', `${acme.path}/tunnels/${tunnel.id}`, { body: { name: 'Theirs' } }))
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('The tunnel was changed meanwhile.').waitFor()
  await page.getByRole('heading', { name: 'Theirs connected' }).waitFor()
  await page.getByRole('button', { name: 'Discard' }).click()
  expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('Theirs')
})

test('a password is issued, shown once, and revoked', async () => {
  await openTab('Passwords')
  await page.getByRole('button', { name: 'New password' }).click()
  expect(await page.getByLabel('New password').last().textContent()).toMatch(/^mt_/)
  await vi.waitFor(async () => expect(await page.getByRole('button', { name: 'Revoke' }).count()).toBe(2), LATER)
  await page.reload()
  await vi.waitFor(async () => expect(await page.getByRole('button', { name: 'Revoke' }).count()).toBe(2), LATER)
  expect(await page.getByText('mt_').count()).toBe(0)
  await page.getByRole('button', { name: 'Revoke' }).first().click()
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
  await vi.waitFor(async () => expect(await page.getByRole('button', { name: 'Revoke' }).count()).toBe(1), LATER)
})

test('connections, explain and audit show what happened and what would happen', async () => {
  await openTab('Connections')
  await page.getByRole('region', { name: 'Connections' }).getByText('password').first().waitFor()
  await openTab('Explain')
  await page.getByLabel('Scheme').selectOption('http')
  await page.getByRole('button', { name: 'Explain' }).click()
  await page.getByText('301').first().waitFor()
  await screenshot(page, 'explain')
  await page.getByLabel('Path').fill('no slash')
  await page.getByRole('button', { name: 'Explain' }).click()
  await page.getByText('This must begin with /').waitFor()
  await openTab('Audit')
  const entry = page.getByRole('row').filter({ hasText: 'update' }).last()
  await entry.getByText('fields').click()
  await entry.getByText('config.httpsOnly').waitFor()
  page.expectNoFaults()
})

test('a viewer sees the tunnel, and no control that would change it', async () => {
  const path = `/dashboard/o/${acme.organization}/prod/tunnels/${tunnel.hostname}/settings`
  const viewer = await browser.signedIn(await acme.token('viewer'), path)
  await viewer.getByRole('heading', { name: 'Theirs connected' }).waitFor()
  expect(await viewer.getByLabel('Name', { exact: true }).isDisabled()).toBe(true)
  for (const name of ['Save', 'Delete']) expect(await viewer.getByRole('button', { name }).count()).toBe(0)
  viewer.expectNoFaults()
})

test('a tunnel is found by its name, and deleted after a question', async () => {
  await page.getByRole('link', { name: 'Tunnels' }).first().click()
  await page.getByLabel('Search by name').fill('theirs')
  await page.getByText('1 of 1 found').waitFor()
  await screenshot(page, 'tunnels')
  await page.getByRole('list', { name: 'Tunnels' }).getByRole('link').click()
  await page.getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('dialog').waitFor()
  await page.keyboard.press('Escape')
  await vi.waitFor(async () => expect(await page.getByRole('dialog').count()).toBe(0), LATER)
  await page.getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete tunnel' }).click()
  await page.getByRole('heading', { name: 'Show what runs on your machine to the world' }).waitFor()
  page.expectNoFaults()
})
