import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { scratch } from '../postgresql/scratch.ts'
import { type Running, running } from './ssh-programs.ts'

const run = promisify(execFile)
const PACKAGES = { 'chromium-headless-shell': 'chromium-headless-shell', certutil: 'libnss3-tools' }

/**
 * Starts headless Chromium with an empty profile that trusts a CA (a PEM file), and opens a page. Names below `localhost` resolve
 * to this machine. Disposing closes it and removes its profile.
 * @throws Error when a program is missing, with the name of its package
 */
export async function openBrowser(url: string, ca: string): Promise<Running> {
  for (const [program, name] of Object.entries(PACKAGES)) {
    await run('which', [program]).catch((cause: unknown) => {
      throw new Error(`${program} is missing: it is in Debian’s package ${name}`, { cause })
    })
  }
  const directory = await mkdtemp(join(await scratch(), 'browser-'))
  const database = join(directory, '.pki/nssdb')
  await mkdir(database, { recursive: true })
  await run('certutil', ['-d', `sql:${database}`, '-N', '--empty-password'])
  await run('certutil', ['-d', `sql:${database}`, '-A', '-n', 'Mooring', '-t', 'C,,', '-i', ca])
  // The sandbox does not run as root, and needs rights that many containers lack; the page is our own.
  const settings = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', `--user-data-dir=${join(directory, 'profile')}`]
  const browser = running(['chromium-headless-shell', ...settings, url], { HOME: directory })
  return {
    ...browser,
    async [Symbol.asyncDispose]() {
      await browser[Symbol.asyncDispose]()
      await rm(directory, { recursive: true })
    },
  }
}
