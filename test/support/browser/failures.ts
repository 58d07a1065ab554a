import { afterEach } from 'vitest'
import type { WatchedPage } from './dashboard-browser.ts'

/** Adds what the page shows, and the answers of the API that it got, to the message of each test of this file that fails. */
export function showPageOfFailures(page: () => WatchedPage): void {
  afterEach(async ({ task }) => {
    for (const error of task.result?.errors ?? []) {
      const text = await page().locator('body').innerText()
      error.message += `\nThe page shows:\n${text}\nThe API refused: ${page().refused.join(', ')}`
    }
  })
}
