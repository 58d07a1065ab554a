import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'

const DOCS = fileURLToPath(new URL('../../../docs/dashboard/', import.meta.url))
/** Pictures of docs/dashboard.md. */
const IN_DOCS: readonly string[] = ['overview', 'overview-dark', 'requests', 'connect', 'database', 'dedicated']

/**
 * Takes a picture of a page. MOORING_SCREENSHOTS names the directory of all pictures, or is `docs` for those of the documentation; without it there is
 * none, so that a test run changes no file.
 */
export async function screenshot(page: Page, name: string): Promise<void> {
  const { MOORING_SCREENSHOTS: directory } = process.env
  if (directory === undefined || (directory === 'docs' && !IN_DOCS.includes(name))) return
  await page.screenshot({ path: `${directory === 'docs' ? DOCS : `${directory}/`}${name}.png`, animations: 'disabled' })
}
