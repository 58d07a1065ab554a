import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type DashboardBrowser, openDashboardBrowser, type WatchedPage } from '../../support/browser/dashboard-browser.ts'
import { openDeployment } from '../../support/deployment/deployment.ts'
import type { Tenant } from '../../support/api/tenant.ts'
import type { Tunnel } from '../../support/api/answers.ts'
import { LATER } from '../../support/patience.ts'

/** The webhooks of a tunnel in Chromium. Embedded mode delivers to receivers on this machine. */

const MARKUP = `<img src=x onerror=pwned=1>`
const deployment = openDeployment()
const cleanup = new AsyncDisposableStack()
const received: string[] = []
let receiver: Server
let url: string
let acme: Tenant
let tunnel: Tunnel
let browser: DashboardBrowser
let page: WatchedPage
beforeAll(async () => {
  acme = await deployment.namespace()
  tunnel = await acme.tunnel()
  receiver = createServer((req, res) => {
    const respond = (body: string): void => {
      received.push(body)
      res.writeHead(received.length === 1 ? 500 : 200).end(MARKUP)
    }
    text(req).then(respond, () => res.destroy())
  }).listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  cleanup.defer(() => new Promise((resolve) => receiver.close(() => resolve())))
  url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`
  browser = cleanup.use(await openDashboardBrowser(deployment.installation))
  page = await browser.signedIn(await acme.token('editor'))
  await page.goto(
    `${deployment.installation.sharedUrl}/dashboard/o/${acme.organization}/prod/tunnels/${tunnel.hostname}/webhooks`,
  )
})
afterAll(async () => {
  await cleanup.disposeAsync()
  await deployment[Symbol.asyncDispose]()
})

const confirm = async (verb: string) => {
  await page.getByRole('button', { name: `${verb} ` }).click()
  await page
    .getByRole('dialog')
    .getByRole('button', { name: verb.split(' ')[0] ?? '', exact: true })
    .click()
  await vi.waitFor(async () => expect(await page.getByRole('dialog').count()).toBe(0), LATER)
}

test('a webhook is added with its secret once; a wrong URL is explained at its field', async () => {
  await page.getByLabel('URL').fill('ftp://example.org')
  await page.getByRole('button', { name: 'Add webhook' }).click()
  await page.getByText('This must').waitFor()
  await page.getByLabel('URL').fill(url)
  await page.getByRole('button', { name: 'Add webhook' }).click()
  expect(await page.getByLabel('Signing secret').last().textContent()).toMatch(/^whsec_/)
  await page.reload()
  await page.getByRole('region', { name: url }).getByText('enabled', { exact: true }).waitFor()
  expect(await page.getByText('whsec_').count()).toBe(0)
})

test('a test event shows its answer as text, and is delivered again on request', async () => {
  await page.getByRole('button', { name: 'Send a test' }).click()
  const deliveries = page.getByRole('region', { name: 'Deliveries' })
  await deliveries.getByText('500', { exact: true }).waitFor()
  await deliveries.getByText('Body', { exact: true }).click()
  await deliveries.getByText(MARKUP).waitFor()
  expect(await page.evaluate(`[typeof pwned, document.querySelectorAll('img').length]`)).toEqual(['undefined', 0])
  await deliveries.getByRole('button', { name: 'Redeliver' }).first().click()
  await vi.waitFor(() => expect(received.length).toBeGreaterThan(1), LATER)
  await deliveries.getByText('delivered').first().waitFor()
  page.expectNoFaults()
})

test('a webhook is rotated, disabled and removed', async () => {
  await confirm('Rotate secret')
  expect(await page.getByLabel('Signing secret').last().textContent()).toMatch(/^whsec_/)
  await page.getByRole('button', { name: 'Disable' }).click()
  await page.getByRole('region', { name: url }).getByText('disabled', { exact: true }).waitFor()
  await confirm('Remove')
  await page.getByRole('heading', { name: 'No webhooks' }).waitFor()
  page.expectNoFaults()
})
