import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { createDashboardClient, expectRejection } from '../support/api/dashboard-client.ts'
import { openPlainBrowser } from '../support/browser/dashboard-browser.ts'
import { startMooring } from '../support/deployment/mooring.ts'
import { LATER } from '../support/patience.ts'

/** The link of `npm start` that signs in to the dashboard, in Chromium, and the first tunnel from there. */

/** Status of the page for a `Host`, as a browser sends it that resolves the name to loopback. */
async function statusAt(url: string, host: string): Promise<number | undefined> {
  const [response] = (await once(get(`${url}/dashboard`, { headers: { host } }), 'response')) as [IncomingMessage]
  response.resume()
  return response.statusCode
}

const cleanup = new AsyncDisposableStack()
afterAll(() => cleanup.disposeAsync())

test('the link signs in once and leads to a tunnel; its session outlives kill -9, and its code is in no log', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'mooring-link-'))
  cleanup.defer(() => rm(dataDir, { recursive: true, force: true }))
  const first = await startMooring({ dataDir, args: ['--log-level', 'trace'] })
  const ca = await readFile(first.ready.ca, 'utf8')
  const { dashboardUrl, sharedUrl, sharedHttpUrl } = first.ready
  // The text follows the ready file.
  await expect.poll(() => first.output(), LATER).toContain(dashboardUrl)
  const link = new URL(dashboardUrl)
  // Browsers send no fragment, so that the code reaches the server by the page alone.
  const { port } = new URL(sharedHttpUrl ?? '')
  expect([link.origin, link.pathname, link.search]).toEqual([`http://dashboard.localhost:${port}`, '/dashboard', ''])
  expect(await statusAt(sharedHttpUrl ?? '', link.host)).toBe(200)
  expect(await statusAt(sharedHttpUrl ?? '', `other.localhost:${port}`)).toBeGreaterThanOrEqual(400)
  const code = link.hash.replace('#code=', '')

  await using browser = await openPlainBrowser()
  const page = await browser.page()
  await page.goto(dashboardUrl)
  await page.waitForURL('**/dashboard/o/default/default/tunnels')
  await page.getByRole('link', { name: 'New tunnel' }).first().click()
  await page.getByLabel('Name', { exact: true }).fill('Shop')
  await page.getByRole('button', { name: 'Create tunnel' }).click()
  await page.getByRole('heading', { name: 'Waiting for your connection …' }).waitFor()
  expect(await page.getByLabel('Command').textContent()).toContain('ssh ')
  await page.reload()
  await page.getByRole('button', { name: 'Sign out' }).waitFor()
  page.expectNoFaults()
  const [session] = await page.context().cookies(link.origin)
  expect(session).toMatchObject({ name: '__Host-mooring-session', httpOnly: true, secure: true, sameSite: 'Strict' })
  using late = createDashboardClient({ url: sharedUrl, ca })
  expectRejection(await late.signIn({ code }), '401 unauthenticated')
  // The welcome message has the link; the log must not.
  expect(first.output().split(code)).toHaveLength(2)

  const ended = once(first.process, 'exit')
  first.process.kill('SIGKILL')
  await ended
  const second = cleanup.use(await startMooring({ dataDir }))
  using again = createDashboardClient({
    url: second.ready.sharedUrl,
    ca,
    cookie: `${session?.name ?? ''}=${session?.value ?? ''}`,
  })
  expect((await again.send('GET', '/dashboard/v1/me')).status).toBe(200)
  using old = createDashboardClient({ url: second.ready.sharedUrl, ca })
  expectRejection(await old.signIn({ code }), '401 unauthenticated')
  await first[Symbol.asyncDispose]()
})
