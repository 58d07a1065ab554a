import { afterAll, beforeAll, expect, test } from 'vitest'
import { asInstance, createDatabase, dedicated, untilBackedUp, untilRestorable, untilRunning } from '../support/api/databases.ts'
import type { Tenant } from '../support/api/tenant.ts'
import { type DashboardBrowser, openDashboardBrowser } from '../support/browser/dashboard-browser.ts'
import { screenshot } from '../support/browser/screenshots.ts'
import { openDeployment } from '../support/deployment/deployment.ts'
import { query } from '../support/postgresql/sql.ts'
import { LATER, patient } from '../support/patience.ts'

/** A user's way through the backups of a dedicated database, in Chromium. */

const deployment = openDeployment()
const cleanup = new AsyncDisposableStack()
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

test('backups are turned on, asked for, and restored from as a new database', { timeout: patient(480_000) }, async () => {
  const editor = dedicated(acme.as('editor'))
  const body = {
    ...{ name: 'orders', organization: acme.organization, namespace: acme.namespace },
    ...{ engine: 'postgresql-15.4.0', region: deployment.installation.region.id, plan: 'small' },
  }
  const database = await untilRunning(editor, await createDatabase(editor, body))
  const dashboard = `/dashboard/o/${acme.organization}/${acme.namespace}/dedicated/`
  const page = await browser.signedIn(await acme.token('editor'), dashboard + database.id)
  page.setDefaultTimeout(LATER.timeout)
  const button = (name: string) => page.getByRole('button', { name, exact: true })

  await page.getByLabel('Retention in days').fill('36')
  await button('Add point-in-time recovery').click()
  await page.getByText('must be at most 35').waitFor()
  await page.getByLabel('Retention in days').fill('2')
  await button('Add point-in-time recovery').click()
  await page.getByText('2 days', { exact: true }).waitFor()
  await page.getByRole('row', { name: /succeeded scheduled/ }).waitFor()
  await button('Back up now').click()
  await page.getByRole('row', { name: /succeeded requested/ }).waitFor()

  const present = await untilRunning(editor, database)
  await untilBackedUp(editor, present)
  await query(asInstance(present), 'CREATE TABLE kept AS SELECT 1 AS item')
  const [row] = await query(asInstance(present), 'SELECT extract(epoch FROM clock_timestamp()) * 1000 AS now')
  const moment = Math.ceil(Number(row?.now))
  await untilRestorable(editor, present, moment)
  await page.getByLabel('Name of the new database').fill('orders-before')
  await page.getByLabel('Moment in UTC').fill('2020-01-31T12:00:00Z')
  await button('Restore as a new database').click()
  await page.getByText('must be within the restore window').waitFor()
  await screenshot(page, 'dedicated-backups')
  await page.getByLabel('Moment in UTC').fill(new Date(moment).toISOString())
  await button('Restore as a new database').click()
  await page.getByRole('heading', { name: 'orders-before running', exact: true }).waitFor()
  page.expectNoFaults()

  const restored = await untilRunning(editor, { id: page.url().replace(/.*\//, '') })
  expect(restored.name).toBe('orders-before')
  expect(await query(asInstance(restored), 'SELECT item FROM kept')).toEqual([{ item: 1 }])
})
