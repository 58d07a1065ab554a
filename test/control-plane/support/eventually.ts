import { setTimeout } from 'node:timers/promises'

/** Resolves when `check` returns true. Calls it every 50 ms. @throws Error after one minute */
export async function eventually(check: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + 60_000
  while (!(await check())) {
    if (performance.now() > end) throw new Error(`not within a minute: ${check.toString()}`)
    await setTimeout(50)
  }
}
