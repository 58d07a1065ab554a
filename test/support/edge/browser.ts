import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { scratch } from '../postgresql/scratch.ts'
import { type Running, running } from './ssh-programs.ts'

const run = promisify(execFile)
const PACKAGES = { 'chromium-headless-shell': 'chromium-headless-shell', certutil: 'libnss3-tools' }

/**
 * Headless Chromium of somebody new, who trusts a CA (a PEM file) and opens a page. Names below `localhost` lead it to this machine. It stays open until it is
 * disposed of, with what it has kept.
 * @throws Error when a program is missing, which names the package that has it
 */
export async function openBrowser(url: string, ca: string): Promise<Running> {
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
  // Its sandbox does not run as root, and needs what many containers forbid; the page is one of ours.
  const settings = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', `--user-data-dir=${join(home, 'profile')}`]
  const browser = running(['chromium-headless-shell', ...settings, url], { HOME: home })
  return {
    ...browser,
    async [Symbol.asyncDispose]() {
      await browser[Symbol.asyncDispose]()
      await rm(home, { recursive: true })
    },
  }
}
