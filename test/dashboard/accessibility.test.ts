import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { AxeResults } from 'axe-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type DashboardBrowser, openDashboardBrowser, type WatchedPage } from '../support/browser/dashboard-browser.ts'
import { screenshot } from '../support/browser/screenshots.ts'
import { startShopServer } from '../support/browser/shop-server.ts'
import { openDeployment } from '../support/deployment/deployment.ts'
import { createDatabase } from '../support/api/databases.ts'
import type { Tenant } from '../support/api/tenant.ts'
import type { Tunnel } from '../support/api/answers.ts'
import { person } from '../support/edge/openssh.ts'
import { visit } from '../support/edge/visitor.ts'
import { LATER } from '../support/patience.ts'

/** The dashboard by keyboard, in dark and light, on a phone, and for programs that read it out. */

const deployment = openDeployment()
const cleanup = new AsyncDisposableStack()
let acme: Tenant
let tunnel: Tunnel
let database: string
let dedicated: string
let browser: DashboardBrowser
let axe: string
beforeAll(async () => {
  acme = await deployment.namespace()
  axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
  browser = cleanup.use(await openDashboardBrowser(deployment.installation))
  const user = cleanup.use(await person())
  const { port } = cleanup.use(await startShopServer())
  tunnel = await acme.tunnel({
    authorizedKeys: [user.publicKey],
    liveHeaderModifications: [{ name: 'X-A', value: '1', type: 'request' }],
  })
  database = (await acme.instance()).id
  const { organization, namespace } = acme
  const size = { engine: 'postgresql-15.4.0', region: deployment.installation.region.id, plan: 'small' }
  const firewallRules = [{ cidr: '203.0.113.0/24', description: 'office' }]
  const body = { name: 'orders', organization, namespace, ...size, firewallRules }
  dedicated = (await createDatabase(acme.as('editor'), body)).id
  await user.forward(tunnel, port)
  const go = (path: string) => visit(deployment.installation.ca, tunnel, path)
  await vi.waitFor(async () => expect((await go('/')).status).toBe(200), LATER)
  for (const path of ['/cart/old', '/admin', '/checkout/fail', `/${'long'.repeat(60)}`]) await go(path)
})
afterAll(async () => {
  await cleanup.disposeAsync()
  await deployment[Symbol.asyncDispose]()
})

/** Pages with a text that shows that each is complete. */
const pages = (): readonly (readonly [path: string, text: string])[] => [
  ['tunnels', 'connected'],
  ['tunnels/new', 'Create tunnel'],
  [`tunnels/${tunnel.hostname}/overview`, 'Top client addresses'],
  [`tunnels/${tunnel.hostname}/requests`, '/checkout/fail'],
  [`tunnels/${tunnel.hostname}/connections`, 'Login by'],
  [`tunnels/${tunnel.hostname}/settings`, 'Headers to set'],
  [`tunnels/${tunnel.hostname}/passwords`, 'No passwords'],
  [`tunnels/${tunnel.hostname}/explain`, 'From the address'],
  [`tunnels/${tunnel.hostname}/audit`, 'Resource'],
  ['databases', 'PostgreSQL'],
  ['databases/new', 'Create database'],
  [`databases/${database}`, 'Show connection string'],
  ['dedicated', 'orders'],
  ['dedicated/new', 'Private network'],
  [`dedicated/${dedicated}`, 'Change plan'],
  ['audit', 'Resource'],
]

const urlOf = (path: string) => `${deployment.installation.sharedUrl}/dashboard/o/${acme.organization}/prod/${path}`

async function expectAccessible(page: WatchedPage, name: string): Promise<void> {
  // The policy of the page forbids scripts that are not its own; the test's run outside of it.
  await page.evaluate(axe)
  const { violations } = await page.evaluate<AxeResults>(
    `axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })`,
  )
  const found = violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html}: ${failureSummary ?? ''}`),
  )
  expect(found, name).toEqual([])
}

describe.each([
  ['light', 1280],
  ['dark', 1280],
  ['light', 360],
  ['dark', 360],
] as const)('in %s, %i pixels wide', (colorScheme, width) => {
  test('every page meets WCAG 2.2 AA by axe-core, and fits', async () => {
    const options = { colorScheme, viewport: { width, height: 800 }, reducedMotion: 'reduce' } as const
    const page = await browser.signedIn(await acme.token('editor'), '/dashboard', options)
    for (const [path, text] of pages()) {
      await page.goto(urlOf(path))
      await page.getByText(text).first().waitFor()
      await screenshot(
        page,
        `${colorScheme}-${width}-${path.replace(/^.*[0-9a-f-]{16,}/, path.split('/')[0]?.slice(0, -1) ?? '').replaceAll('/', '-')}`,
      )
      await expectAccessible(page, path)
      // WCAG 2.2, 1.4.10 Reflow: no page scrolls in two directions.
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth'), path).toBeLessThanOrEqual(0)
    }
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByText('You are signed out.').waitFor()
    await expectAccessible(page, 'sign-in')
    page.expectNoFaults()
  })
})

test('errors at fields, a shown connection and a question meet WCAG 2.2 AA by axe-core', async () => {
  const page = await browser.signedIn(await acme.token('editor'), '/dashboard', { reducedMotion: 'reduce' })
  await page.goto(urlOf(`dedicated/${dedicated}`))
  await page.getByRole('heading', { name: 'orders running' }).waitFor(LATER)
  await page.getByLabel('Address of rule 1').fill('office')
  await page.getByRole('button', { name: 'Save network' }).click()
  await page.getByText('must be an IP address').waitFor()
  await page.getByRole('button', { name: 'Show connection' }).click()
  await page.getByLabel('Connection string').waitFor()
  await expectAccessible(page, 'dedicated with errors and connection')
  await page.getByRole('button', { name: 'Delete …' }).click()
  await page.getByLabel('Type orders to confirm').waitFor()
  await expectAccessible(page, 'question before a deletion')
})

test('the keyboard reaches the content, a request and a dialog, which gives the focus back', async () => {
  const page = await browser.signedIn(
    await acme.token('editor'),
    `/dashboard/o/${acme.organization}/prod/tunnels/${tunnel.hostname}/requests`,
  )
  await page.getByText('/checkout/fail').waitFor()
  await page.reload()
  await page.getByText('/checkout/fail').waitFor()
  await page.keyboard.press('Tab')
  expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to the content')
  await page.keyboard.press('Enter')
  expect(await page.evaluate('document.activeElement.id')).toBe('main')
  await page.getByRole('button', { name: '/checkout/fail' }).focus()
  await page.keyboard.press('Enter')
  await page.getByRole('complementary', { name: 'Details of the request' }).waitFor()
  await page.getByRole('button', { name: 'Delete' }).focus()
  await page.keyboard.press('Enter')
  await expect.poll(() => page.evaluate(`document.activeElement.closest('dialog') !== null`)).toBe(true)
  await page.keyboard.press('Escape')
  await expect.poll(() => page.evaluate('document.activeElement.textContent')).toBe('Delete')
})

test('the page moves nothing on request', async () => {
  const page = await browser.page({ reducedMotion: 'reduce' })
  await page.goto(`${deployment.installation.sharedUrl}/dashboard`)
  await page.getByLabel('Token').waitFor()
  expect(await page.evaluate('document.getAnimations().length')).toBe(0)
})
