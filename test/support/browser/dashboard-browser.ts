import { execFile } from 'node:child_process'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { expect } from 'vitest'
import { browserHome, CHROMIUM, CHROMIUM_SETTINGS } from './chromium.ts'

/** Browser for pages of the dashboard; it trusts the installation's CA. */
export interface DashboardBrowser extends AsyncDisposable {
  readonly browser: Browser
  /** Opens a page without a session, in a context of its own. */
  page(options?: BrowserContextOptions): Promise<WatchedPage>
  /** Opens a page and signs in with a token at `path`. */
  signedIn(token: string, path?: string, options?: BrowserContextOptions): Promise<WatchedPage>
}

/** Page with what went wrong on it. */
export type WatchedPage = Page & {
  /** Expects that no script failed, that the policy stopped nothing, and that nothing opened a dialog. */
  expectNoFaults(): void
  /** Status and URL of each response of 400 and above, oldest first. */
  readonly refused: readonly string[]
}

const run = promisify(execFile)
/** Maximum time of one step on a page, in milliseconds. */
const STEP_MS = 60_000

/** Starts the browser. @throws Error when a program is missing, with the name of its package */
export async function openDashboardBrowser({ sharedUrl, ca }: { sharedUrl: string; ca: string }): Promise<DashboardBrowser> {
  await using started = new AsyncDisposableStack()
  const directory = started.use(await mkdtempDisposable(join(tmpdir(), 'dashboard-')))
  const file = join(directory.path, 'ca.pem')
  await writeFile(file, ca)
  const { home } = started.use(await browserHome(file))
  const browser = await launched(home)
  started.defer(() => browser.close())
  const page = (options?: BrowserContextOptions) => pageOf(browser, options)
  const ownership = started.move()

  return {
    ...{ browser, page },
    async signedIn(token, path = '/dashboard', options = {}) {
      const opened = await page(options)
      await opened.goto(sharedUrl + path)
      await opened.getByLabel('Token').fill(token)
      await opened.getByRole('button', { name: 'Sign in' }).click()
      await opened.getByRole('button', { name: 'Sign out' }).waitFor()
      return opened
    },
    [Symbol.asyncDispose]: () => ownership.disposeAsync(),
  }
}

/** Starts a browser that trusts no CA of an installation, for pages without TLS. @throws Error when the program is missing */
export async function openPlainBrowser(): Promise<AsyncDisposable & Pick<DashboardBrowser, 'page'>> {
  await using started = new AsyncDisposableStack()
  const directory = started.use(await mkdtempDisposable(join(tmpdir(), 'browser-')))
  const browser = await launched(directory.path)
  started.defer(() => browser.close())
  const ownership = started.move()
  return { page: (options) => pageOf(browser, options), [Symbol.asyncDispose]: () => ownership.disposeAsync() }
}

async function launched(home: string): Promise<Browser> {
  const { stdout } = await run('which', [CHROMIUM])
  const env = { PATH: process.env.PATH ?? '', HOME: home }
  return chromium.launch({ executablePath: stdout.trim(), args: [...CHROMIUM_SETTINGS], env })
}

async function pageOf(browser: Browser, options: BrowserContextOptions = {}): Promise<WatchedPage> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options })
  context.setDefaultTimeout(STEP_MS)
  return watch(await context.newPage())
}

function watch(page: Page): WatchedPage {
  const faults: string[] = []
  const refused: string[] = []
  page.on('response', (response) => {
    if (response.status() >= 400) refused.push(`${response.status()} ${response.request().method()} ${response.url()}`)
  })
  page.on('pageerror', (error) => faults.push(error.message))
  page.on('dialog', (dialog) => {
    faults.push(`dialog: ${dialog.message()}`)
    dialog.dismiss().catch((error: unknown) => faults.push(String(error)))
  })
  page.on('console', (line) => {
    const text = line.text()
    // The browser reports each answer of 400 and above as an error; these are the API's.
    if (line.type() === 'error' && !text.startsWith('Failed to load resource')) faults.push(text)
  })
  return Object.assign(page, { refused, expectNoFaults: () => expect(faults).toEqual([]) })
}
