import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type DashboardBrowser, openDashboardBrowser, type WatchedPage } from '../support/browser/dashboard-browser.ts'
import { screenshot } from '../support/browser/screenshots.ts'
import { openDeployment } from '../support/deployment/deployment.ts'
import { expectSuccess, type Tenant } from '../support/api/tenant.ts'
import type { Instance } from '../support/api/answers.ts'
import { query } from '../support/postgresql/sql.ts'
import { LATER } from '../support/patience.ts'

/** A user's way through the pages of a database, in Chromium. The tests build on each other. */

const deployment = openDeployment()
const cleanup = new AsyncDisposableStack()
let acme: Tenant
let browser: DashboardBrowser
let page: WatchedPage
let id: string
beforeAll(async () => {
  acme = await deployment.namespace()
  browser = cleanup.use(await openDashboardBrowser(deployment.installation))
  page = await browser.signedIn(await acme.token('editor'))
})
afterAll(async () => {
  await cleanup.disposeAsync()
  await deployment[Symbol.asyncDispose]()
})

/** Returns the database with its credentials, by the API. */
const read = async (): Promise<Instance> =>
  (await expectSuccess(acme.as('editor')('GET', `/v1/instances/${id}?include=credentials`))).body.data.instance
const ask = async (action: string, verb: string): Promise<void> => {
  await page.getByRole('button', { name: action }).click()
  await page.getByRole('dialog').getByRole('button', { name: verb, exact: true }).click()
  await vi.waitFor(async () => expect(await page.getByRole('dialog').count()).toBe(0), LATER)
}
const shownUri = async () => (await page.getByLabel('Connection string', { exact: true }).textContent()) ?? ''

test('a new database shows a connection string that works', async () => {
  await page.getByRole('link', { name: 'Databases' }).click()
  await page.getByRole('link', { name: 'New database' }).first().click()
  await page.getByLabel('Identifier').fill('<b>pr-42</b>')
  await page.getByLabel('Engine').selectOption('postgresql-15.4.0')
  await page.getByLabel('Lifetime').selectOption('3600')
  await page.getByRole('button', { name: 'Create database' }).click()
  await page.getByText('This must').waitFor()
  await page.getByLabel('Identifier').fill('pr-42')
  await page.getByRole('button', { name: 'Create database' }).click()
  const uri = await shownUri()
  expect(await page.getByLabel('Connect with psql').textContent()).toBe(`psql ${uri}`)
  await page.getByRole('button', { name: 'Prisma' }).click()
  expect(await page.getByLabel('Connect with Prisma').textContent()).toContain('DATABASE_URL=')
  await screenshot(page, 'new-database')
  await page.getByRole('link', { name: 'Go to the database' }).click()
  await page.getByRole('heading', { name: 'pr-42 ready' }).waitFor()
  id = page.url().replace(/.*\//, '')
  const instance = await read()
  expect(uri).toBe(instance.uri)
  await query(instance, 'create table kept (x int)')
  expect(await page.getByText(instance.password).count()).toBe(0)
  page.expectNoFaults()
})

test('the connection string is shown on demand, and rotated after a question', async () => {
  await page.getByRole('button', { name: 'Show connection string' }).click()
  const before = await shownUri()
  await ask('Rotate the password', 'Rotate')
  await vi.waitFor(async () => expect(await shownUri()).not.toBe(before), LATER)
  expect(await shownUri()).toBe((await read()).uri)
  await page.getByRole('button', { name: 'Hide connection string' }).click()
  expect(await page.getByLabel('Connection string', { exact: true }).count()).toBe(0)
})

test('a reset empties it; disabling rejects logins until it is enabled', async () => {
  await ask('Reset', 'Reset')
  expect(await query(await read(), `select to_regclass('kept')::text as name`)).toEqual([{ name: null }])
  await ask('Disable', 'Disable')
  await page.getByRole('heading', { name: 'pr-42 disabled' }).waitFor()
  await expect(query(await read(), 'select 1')).rejects.toThrow()
  await page.getByRole('button', { name: 'Enable' }).click()
  await page.getByRole('heading', { name: 'pr-42 ready' }).waitFor()
  expect(await query(await read(), 'select 1 as one')).toEqual([{ one: 1 }])
  await screenshot(page, 'database')
  page.expectNoFaults()
})

test('it is in the list, and gone after its deletion', async () => {
  await page.getByRole('link', { name: 'Databases' }).first().click()
  await page.getByRole('list', { name: 'Databases' }).getByText('expires in').waitFor()
  await screenshot(page, 'databases')
  await page.getByRole('list', { name: 'Databases' }).getByRole('link').click()
  await ask('Delete', 'Delete')
  await page.getByRole('heading', { name: 'A database in a second' }).waitFor()
  expect((await acme.as('viewer')('GET', `/v1/instances/${id}`)).status).toBe(404)
  page.expectNoFaults()
})
