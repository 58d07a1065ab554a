import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Data, Database } from '../support/api/answers.ts'
import { createDatabase, dedicated } from '../support/api/databases.ts'
import { expectSuccess, type Tenant } from '../support/api/tenant.ts'
import { type DashboardBrowser, openDashboardBrowser, type WatchedPage } from '../support/browser/dashboard-browser.ts'
import { openDeployment } from '../support/deployment/deployment.ts'

/** Text of tenants, administrators and database servers stays text on each page of dedicated databases. */

/** Would run on any page that makes markup of it. */
const MARKUP = `"><img src=x onerror=pwned=1><svg onload=pwned=1>`
const deployment = openDeployment()
const cleanup = new AsyncDisposableStack()
let acme: Tenant
let database: Database
let browser: DashboardBrowser
let page: WatchedPage
beforeAll(async () => {
  acme = await deployment.namespace()
  browser = cleanup.use(await openDashboardBrowser(deployment.installation))
  const firewallRules = [{ cidr: '203.0.113.0/24', description: MARKUP }]
  const { organization, namespace } = acme
  const size = { engine: 'postgresql-15.4.0', region: deployment.installation.region.id, plan: 'small' }
  database = await createDatabase(acme.as('editor'), { name: 'orders', organization, namespace, ...size, firewallRules })
  // An identity provider chooses the name of the user.
  const subject = `${MARKUP}${randomUUID()}`
  page = await browser.signedIn(await deployment.tokens.mint({ subject, namespace: acme.home, role: 'editor' }))
})
afterAll(async () => {
  await cleanup.disposeAsync()
  await deployment[Symbol.asyncDispose]()
})

const open = (...rest: readonly string[]) =>
  page.goto(`${deployment.installation.sharedUrl}/dashboard/o/${acme.organization}/prod/${rest.join('/')}`)

/** Expects that no element was made of a text, and that no script of it ran. */
async function expectNoMarkup(): Promise<void> {
  const made = await page.evaluate(
    `[typeof pwned, document.querySelectorAll('img, [onload], [onerror], script:not([src])').length]`,
  )
  expect(made).toEqual(['undefined', 0])
  page.expectNoFaults()
}

/** Fields whose values the pages compare or count with; all other texts of an answer may be anything. */
const KEPT = new Set([
  'id',
  'organization',
  'namespace',
  'engine',
  'engines',
  'status',
  'createdAt',
  'kind',
  'code',
  'field',
  'nextCursor',
  'msg',
])

/** Puts markup into each text of an answer, as no check of a name or of a plan were there. */
function hostile(value: unknown, key = ''): unknown {
  if (KEPT.has(key)) return value
  if (typeof value === 'string') return `${MARKUP}${value}`
  if (Array.isArray(value)) return value.map((item: unknown) => hostile(item))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, hostile(part, name)]))
}

const connection = {
  host: 'h',
  port: 1,
  user: 'u',
  password: 'p',
  database: 'd',
  uri: 'postgresql://u:p@h',
  ca: 'c',
  internalHost: 'i',
}

const ANSWERS = '**/dashboard/v1/databases**'

/** Puts markup into the answers to reads of the pages, after a change. */
async function changeAnswers(change: (data: Partial<Data>) => object): Promise<void> {
  const read = dedicated(acme.as('editor'))
  await page.unroute(ANSWERS)
  await page.route(ANSWERS, async (route) => {
    const { pathname, search } = new URL(route.request().url())
    const { data } = (await expectSuccess(read('GET', pathname.replace('/dashboard', '') + search))).body
    await route.fulfill({ json: { msg: 'OK', data: hostile(change(data)) } })
  })
}

test('descriptions of rules, and the name of the user in the audit log', async () => {
  await open('dedicated', database.id)
  await page.getByRole('heading', { name: 'orders' }).waitFor()
  expect(await page.getByLabel('Description of rule 1').inputValue()).toBe(MARKUP)
  await page.getByText('fields').first().waitFor()
  await page.getByText('fields').first().click()
  await page.getByText('onerror').first().waitFor()
  await expectNoMarkup()
})

test('each text of the list and of the form for a new database', async () => {
  await changeAnswers((answer) => answer)
  await open('dedicated')
  await page.getByText(`${MARKUP}orders`).waitFor()
  await expectNoMarkup()
  await open('dedicated', 'new')
  await page.getByRole('radio').first().waitFor()
  expect(await page.getByText(MARKUP).count()).toBeGreaterThan(1)
  await expectNoMarkup()
})

test('the reason of a failure, and each text of a database and of its connection', async () => {
  const failed = { status: 'failed', statusReason: 'the server rejects it' }
  await changeAnswers((data) => ({
    ...data,
    ...(data.databases && { databases: data.databases.map((each) => ({ ...each, ...failed })) }),
    ...(data.database && { database: { ...data.database, connection } }),
  }))
  await open('dedicated')
  await page.getByText(`${MARKUP}the server rejects it`).waitFor()
  await expectNoMarkup()
  await open('dedicated', database.id)
  await page.getByRole('alert').getByText(`${MARKUP}the server rejects it`).waitFor()
  await page.getByRole('button', { name: 'Show connection' }).click()
  await page.getByLabel('Connection string').getByText(`${MARKUP}${connection.uri}`).waitFor()
  await expectNoMarkup()
})

test('the name in the question before a deletion, and errors that quote the input', async () => {
  await page.getByRole('button', { name: 'Delete …' }).click()
  await page.getByRole('dialog').getByText(`Delete ${MARKUP}orders?`).waitFor()
  await expectNoMarkup()
  await page.unroute(ANSWERS)
  await open('dedicated', 'new')
  await page.getByRole('textbox', { name: 'Name' }).fill(MARKUP)
  await page.getByRole('button', { name: 'Add a rule' }).click()
  await page.getByLabel('Address of rule 1').fill(MARKUP.slice(0, 40))
  await page.getByLabel('Description of rule 1').fill(MARKUP)
  await page.getByRole('button', { name: 'Create database' }).click()
  await page.getByRole('alert').first().waitFor()
  await expectNoMarkup()
})
