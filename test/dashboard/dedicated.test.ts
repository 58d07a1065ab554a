import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { asInstance, databasePath, dedicated } from '../support/api/databases.ts'
import type { Database } from '../support/api/answers.ts'
import { expectSuccess, type Tenant } from '../support/api/tenant.ts'
import { type DashboardBrowser, openDashboardBrowser, type WatchedPage } from '../support/browser/dashboard-browser.ts'
import { showPageOfFailures } from '../support/browser/failures.ts'
import { screenshot } from '../support/browser/screenshots.ts'
import { newKey } from '../support/edge/ssh2-client.ts'
import { openDeployment } from '../support/deployment/deployment.ts'
import { query } from '../support/postgresql/sql.ts'
import { LATER } from '../support/patience.ts'

/** A user's way through the pages of a dedicated database, in Chromium. The tests build on each other. */

const ENGINE = 'postgresql-15.4.0'
/** Creation and a change of plan start a server: in a cluster, a pod. In a cluster a change of monitoring does so, too. */
const STARTED = { timeout: 240_000 }
/** Limit of a test that waits for one. */
const LONG = 400_000
const RULE = 'must be an IP address or a range'
const deployment = openDeployment()
const cleanup = new AsyncDisposableStack()
let acme: Tenant
let page: WatchedPage
let browser: DashboardBrowser
let id: string
beforeAll(async () => {
  acme = await deployment.namespace()
  browser = cleanup.use(await openDashboardBrowser(deployment.installation))
  page = await browser.signedIn(await acme.token('editor'), '/dashboard', { viewport: { width: 1280, height: 940 } })
})
showPageOfFailures(() => page)
afterAll(async () => {
  await cleanup.disposeAsync()
  await deployment[Symbol.asyncDispose]()
})

/** Number of reads of the connection by this file. */
let ownReads = 0
/** Returns the database with its connection, by the API. */
async function read(): Promise<Database> {
  ownReads++
  return (await expectSuccess(dedicated(acme.as('editor'))('GET', databasePath({ id })))).body.data.database
}
const button = (name: string) => page.getByRole('button', { name, exact: true })
const heading = (name: string) => page.getByRole('heading', { name, exact: true }).waitFor(STARTED)
const shownUri = async () => (await page.getByLabel('Connection string', { exact: true }).textContent()) ?? ''

/** Returns the errors that a screen reader reads out with a field; none for a valid field. */
async function errorsAt(label: string): Promise<string | null> {
  const field = page.getByLabel(label, { exact: true })
  if ((await field.getAttribute('aria-invalid')) !== 'true') return null
  const ids = ((await field.getAttribute('aria-describedby')) ?? '').split(' ')
  return (await Promise.all(ids.map((each) => page.locator(`[id="${each}"]`).textContent()))).join(' ')
}

test('a new database shows the errors of the API at its fields', async () => {
  await page.getByRole('link', { name: 'Databases' }).click()
  await page.getByRole('link', { name: 'Dedicated', exact: true }).click()
  await heading('A database with a server of its own')
  await page.getByRole('link', { name: 'New dedicated database' }).first().click()
  await page.getByLabel('Engine').selectOption(ENGINE)
  await page.getByRole('textbox', { name: 'Name' }).fill('Orders!')
  await button('Add a rule').click()
  await page.getByLabel('Address of rule 1').fill('0.0.0.0/0')
  await button('Add a rule').click()
  await page.getByLabel('Address of rule 2').fill('203.0.113.0/33')
  await button('Create database').click()
  await vi.waitFor(async () => expect(await errorsAt('Address of rule 2')).toContain(RULE), LATER)
  expect(await errorsAt('Address of rule 1')).toBeNull()
  expect(await errorsAt('Name')).toContain('must be 1 to 40 lower-case letters')
})

test('a pasted list fills one row a line', async () => {
  await page.evaluate(`{
    const clipboardData = new DataTransfer()
    clipboardData.setData('text/plain', '192.0.2.1 first office\\n2001:db8::/32')
    const paste = new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true })
    document.querySelector('[aria-label="Address of rule 2"]').dispatchEvent(paste)
  }`)
  const values = ['Address of rule 2', 'Description of rule 2', 'Address of rule 3'].map((label) =>
    page.getByLabel(label).inputValue(),
  )
  expect(await Promise.all(values)).toEqual(['192.0.2.1', 'first office', '2001:db8::/32'])
  await button('Remove rule 3').click()
  expect(await page.getByLabel('Address of rule 3').count()).toBe(0)
})

test(
  'a new database says what it waits for, until it runs',
  async () => {
    await page.getByRole('textbox', { name: 'Name' }).fill('orders')
    await button('Remove rule 2').click()
    await page.getByLabel('Description of rule 1').fill('everyone')
    await screenshot(page, 'new-dedicated')
    await button('Create database').click()
    await heading('orders running')
    id = page.url().replace(/.*\//, '')
    await page.getByText('203.0.113.0/33').waitFor({ state: 'detached' })
    expect((await read()).firewallRules).toEqual([{ cidr: '0.0.0.0/0', description: 'everyone' }])
    page.expectNoFaults()
  },
  LONG,
)

test('the connection is read on demand, which the audit log records', async () => {
  const reads = async () => {
    const { entries } = (await expectSuccess(acme.as('viewer')('GET', `${acme.path}/audit?id=${id}&action=read`))).body.data
    return entries.length
  }
  const database = await read()
  // An entry may be listed some time after its read.
  await vi.waitFor(async () => expect(await reads()).toBe(ownReads), LATER)
  expect(await page.getByText(database.connection?.password ?? '').count()).toBe(0)
  await button('Show connection').click()
  expect(await shownUri()).toBe(database.connection?.uri)
  await screenshot(page, 'dedicated-connection')
  await query(asInstance(database), 'create table kept (x int)')
  await button('Hide connection').click()
  expect(await page.getByLabel('Connection string', { exact: true }).count()).toBe(0)
  // The page has polled the state meanwhile, and so read no connection but the one on demand.
  await vi.waitFor(async () => expect(await reads()).toBe(ownReads + 1), LATER)
})

test(
  'a wrong firewall rule shows its error in its row, and a right one is saved',
  async () => {
    await page.getByLabel('Description of rule 1').fill('anywhere')
    await button('Add a rule').click()
    await button('Add a rule').click()
    await page.getByLabel('Address of rule 3').fill('office')
    await button('Save network').click()
    await vi.waitFor(async () => expect(await errorsAt('Address of rule 3')).toContain(RULE), LATER)
    await screenshot(page, 'dedicated')
    expect(await errorsAt('Address of rule 2')).toBeNull()
    await page.getByLabel('Address of rule 3').fill('2001:db8::/32')
    await button('Save network').click()
    await page.getByText('Saved.').waitFor()
    const { firewallRules } = await read()
    expect(firewallRules).toEqual([{ cidr: '0.0.0.0/0', description: 'anywhere' }, { cidr: '2001:db8::/32' }])
    await heading('orders running')
  },
  LONG,
)

test('a save does not overwrite what another user has changed', async () => {
  await page.getByLabel('Description of rule 1').fill('mine')
  const body = { firewallRules: [{ cidr: '0.0.0.0/0', description: 'theirs' }] }
  await expectSuccess(dedicated(acme.as('editor'))('PATCH', databasePath({ id }), { body }))
  await button('Save network').click()
  await page.getByText('changed meanwhile').waitFor()
  expect((await read()).firewallRules).toEqual(body.firewallRules)
  await button('Discard').click()
  await vi.waitFor(async () => expect(await page.getByLabel('Description of rule 1').inputValue()).toBe('theirs'), LATER)
})

test(
  'an SSH tunnel is switched on with a key, shows its command, and gets a temporary password',
  async () => {
    const { publicKey } = newKey()
    await page.getByRole('switch', { name: 'SSH tunnel' }).check()
    await page.getByLabel('Public keys, one a line').fill(publicKey.slice(0, -20))
    await button('Save SSH tunnel').click()
    await vi.waitFor(async () => expect(await errorsAt('Public keys, one a line')).toContain('must be a whole key'), LATER)
    await page.getByLabel('Public keys, one a line').fill(publicKey)
    await button('Save SSH tunnel').click()
    await button('New password').click()
    const password = await page.getByLabel('New password', { exact: true }).textContent()
    expect(password).toMatch(/mt_[0-9A-Za-z]{32}/)
    expect((await read()).sshTunnel).toEqual({ authMode: 'both', authorizedKeys: [publicKey] })
    await heading('orders running')
    await button('Show connection').click()
    const command = await page.getByLabel('SSH tunnel', { exact: true }).filter({ hasText: 'ssh -N' }).textContent()
    expect(command).toContain('ssh -N -L 5432:db:5432 ')
    await screenshot(page, 'dedicated-ssh-tunnel')
    await button('Hide connection').click()
    page.expectNoFaults()
  },
  LONG,
)

test(
  'a larger plan is chosen, and a smaller one cannot be chosen after that',
  async () => {
    // Other tests of an installation may have plans of their own.
    const plan = (id: 'small' | 'large') => page.getByRole('radiogroup', { name: 'Plan' }).locator(`input[value="${id}"]`)
    expect(await plan('small').isChecked()).toBe(true)
    await plan('large').check()
    await button('Change plan').click()
    await vi.waitFor(async () => expect(await plan('small').isDisabled()).toBe(true), LATER)
    expect((await read()).plan).toBe('large')
    await heading('orders running')
    expect(await query(asInstance(await read()), `select to_regclass('kept')::text as name`)).toEqual([{ name: 'kept' }])
  },
  LONG,
)

test(
  'monitoring is turned on, and its charts show what was measured',
  async () => {
    await page.getByRole('switch', { name: 'Monitoring' }).click()
    // In a cluster the server restarts.
    await page.getByRole('img', { name: /^Connections over time: from / }).waitFor(STARTED)
    await page.getByRole('img', { name: /^Size over time: from .* MiB/ }).waitFor(STARTED)
    await heading('orders running')
    expect((await read()).monitoring).toBe(true)
    await button('7 d').click()
    await page.getByRole('img', { name: /^Size over time: from .* MiB/ }).waitFor(LATER)
    await screenshot(page, 'dedicated-monitoring')
  },
  LONG,
)

test(
  'the password is rotated after a question',
  async () => {
    const before = await read()
    await button('Rotate the password …').click()
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    const after = await read()
    expect(await shownUri()).toBe(after.connection?.uri)
    expect(after.connection?.password).not.toBe(before.connection?.password)
    await expect(query(asInstance(before), 'select 1')).rejects.toThrow()
    expect(await query(asInstance(after), 'select 1 as one')).toEqual([{ one: 1 }])
    page.expectNoFaults()
  },
  LONG,
)

test('a viewer sees state and settings, and nothing that changes or reads a secret', async () => {
  const viewer = await browser.signedIn(await acme.token('viewer'), `/dashboard/o/${acme.organization}/prod/dedicated/${id}`)
  await viewer.getByLabel('Address of rule 1').waitFor()
  expect(await viewer.getByLabel('Address of rule 1').isDisabled()).toBe(true)
  for (const name of ['Show connection', 'Save network', 'Change plan', 'Delete …']) {
    expect(await viewer.getByRole('button', { name }).count(), name).toBe(0)
  }
  viewer.expectNoFaults()
})

test('a deletion asks for the name, and the list shows it until the database is gone', async () => {
  await button('Delete …').click()
  const dialog = page.getByRole('dialog')
  const confirm = dialog.getByRole('button', { name: 'Delete', exact: true })
  await dialog.getByLabel('Type orders to confirm').fill('order')
  expect(await confirm.isDisabled()).toBe(true)
  await page.keyboard.press('Enter')
  await dialog.getByLabel('Type orders to confirm').fill('orders')
  await confirm.click()
  await heading('A database with a server of its own')
  expect((await dedicated(acme.as('viewer'))('GET', databasePath({ id }))).status).toBe(404)
  page.expectNoFaults()
})
