import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { scratch } from '../postgresql/disks.ts'

export const CHROMIUM = 'chromium-headless-shell'
/** Programs of the browser, and Debian’s packages that have them. */
const PACKAGES = { [CHROMIUM]: 'chromium-headless-shell', certutil: 'libnss3-tools' }
/** The sandbox does not run as root, and needs rights that many containers lack; the pages are our own. */
export const CHROMIUM_SETTINGS = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage']

const run = promisify(execFile)

/**
 * Creates a home directory whose browser trusts a CA (a PEM file).
 * @throws Error when a program is missing, with the name of its package
 */
export async function browserHome(ca: string): Promise<AsyncDisposable & { readonly home: string }> {
  for (const [program, name] of Object.entries(PACKAGES)) {
    await run('which', [program]).catch((cause: unknown) => {
      throw new Error(`${program} is missing: it is in Debian’s package ${name}`, { cause })
    })
  }
  const home = await mkdtemp(join(await scratch(), 'browser-'))
  const database = join(home, '.pki/nssdb')
  await mkdir(database, { recursive: true })
  await run('certutil', ['-d', `sql:${database}`, '-N', '--empty-password'])
  await run('certutil', ['-d', `sql:${database}`, '-A', '-n', 'Mooring', '-t', 'C,,', '-i', ca])
  return { home, [Symbol.asyncDispose]: () => rm(home, { recursive: true, maxRetries: 5 }) }
}
