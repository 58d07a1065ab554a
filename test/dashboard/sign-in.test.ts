import { afterAll, beforeAll, expect, test } from 'vitest'
import { type DashboardBrowser, openDashboardBrowser } from '../support/browser/dashboard-browser.ts'
import { screenshot } from '../support/browser/screenshots.ts'
import { openDeployment } from '../support/deployment/deployment.ts'
import type { Tenant } from '../support/api/tenant.ts'

/** Sign-in, sign-out and the namespace switch, in Chromium. */

const deployment = openDeployment()
const cleanup = new AsyncDisposableStack()
const { sharedUrl } = deployment.installation
let acme: Tenant
let browser: DashboardBrowser
beforeAll(async () => {
  acme = await deployment.namespace()
  browser = cleanup.use(await openDashboardBrowser(deployment.installation))
})
afterAll(async () => {
  await cleanup.disposeAsync()
  await deployment[Symbol.asyncDispose]()
})

test('a wrong token is explained; a right one opens the namespace, and the session survives a reload', async () => {
  const page = await browser.page()
  await page.goto(`${sharedUrl}/dashboard`)
  await page.getByLabel('Token').fill('a.b.c')
  await page.getByLabel('Token').press('Enter')
  await page.getByRole('alert').getByText('the token is not valid here').waitFor()
  await screenshot(page, 'sign-in')
  await page.getByLabel('Token').fill(await acme.token('viewer'))
  await page.getByLabel('Token').press('Enter')
  await page.waitForURL(`**/dashboard/o/${acme.organization}/prod/tunnels`)
  await page.reload()
  await page.getByRole('heading', { name: 'Tunnels' }).waitFor()
  const readable = await page.evaluate('document.cookie + JSON.stringify({ ...localStorage, ...sessionStorage })')
  expect(readable).toBe(JSON.stringify({ 'mooring-namespace': `${acme.organization}/prod` }))
  page.expectNoFaults()
})

test('a deep link asks for a token first, then shows its page', async () => {
  const page = await browser.signedIn(await acme.token('viewer'), `/dashboard/o/${acme.organization}/prod/audit`)
  await page.getByRole('heading', { name: 'Audit log' }).waitFor()
  page.expectNoFaults()
})

test('signing out forgets the page, and its address asks for a token again', async () => {
  const page = await browser.signedIn(await acme.token('viewer'))
  await page.waitForURL('**/tunnels')
  const url = page.url()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByText('You are signed out.').waitFor()
  await page.goto(url)
  await page.getByLabel('Token').waitFor()
})

test('a sign-out that does not reach Mooring is not shown as done, nor a session that the browser did not keep', async () => {
  const page = await browser.signedIn(await acme.token('viewer'))
  await page.route('**/dashboard/session', (route) => route.abort())
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByText('Mooring does not answer.').waitFor()
  expect(await page.getByText('You are signed out.').count()).toBe(0)
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByRole('button', { name: 'Sign out' }).waitFor()

  const blocked = await browser.page()
  await blocked.route('**/dashboard/session', (route) => route.fulfill({ status: 201, json: { msg: 'OK', data: {} } }))
  await blocked.goto(`${sharedUrl}/dashboard`)
  await blocked.getByLabel('Token').fill(await acme.token('viewer'))
  await blocked.getByLabel('Token').press('Enter')
  await blocked.getByText('Your browser did not keep the session cookie.').waitFor()
})

test('an expired session returns to the form, and says so', async () => {
  const page = await browser.signedIn(await acme.token('viewer'))
  await page.waitForURL('**/tunnels')
  await page.context().clearCookies()
  await page.getByText('Your session has ended.').waitFor()
})

test('the namespace switch shows another namespace of the caller, and not those of others', async () => {
  const other = await deployment.namespace()
  const subject = `both-${acme.organization}`
  const token = await deployment.tokens.mint({ subject, namespace: acme.home, role: 'viewer' })
  const member = `${other.path}/members/${encodeURIComponent(`local:${subject}`)}`
  expect((await other.as('admin')('PUT', member, { body: { role: 'viewer' } })).status).toBeLessThan(300)
  const page = await browser.signedIn(token)
  await page.getByLabel('Namespace').selectOption(other.home)
  await page.waitForURL(`**/dashboard/o/${other.organization}/prod/tunnels`)
  const foreign = await deployment.namespace()
  await page.goto(`${sharedUrl}/dashboard/o/${foreign.organization}/prod/tunnels`)
  await page.getByRole('heading', { name: 'Nothing is here' }).waitFor()
  page.expectNoFaults()
})
