import { access, constants, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { MooringError } from '../../shared/errors.ts'
import type { DebianPackage } from './archives.ts'
import { runTool } from './tools.ts'

/** Keys that sign Debian's releases, of the package debian-archive-keyring. */
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'

/** Mirrors of Debian that this machine uses. */
interface Mirrors {
  readonly main: string
  readonly security: string
}

/** Finds the mirrors in the output of `apt-get indextargets`, one address per line. Pure. */
export function mirrorsIn(output: string): Mirrors | undefined {
  const addresses = output.split('\n').map((line) => line.trim().replace(/\/$/, ''))
  const main = addresses.find((address) => address.endsWith('/debian'))
  const security = addresses.find((address) => address.endsWith('/debian-security'))
  return main === undefined ? undefined : { main, security: security ?? `${main}-security` }
}

/** Mirrors of this machine, or undefined where apt does not install from Debian. */
export async function findMirrors(): Promise<Mirrors | undefined> {
  try {
    await access(KEYRING, constants.R_OK)
    return mirrorsIn(await runTool('apt-get', ['indextargets', '--format', '$(REPO_URI)', 'Created-By: Packages'], { cwd: '/' }))
  } catch {
    return undefined
  }
}

/** Configuration of apt that reads Debian's lists into `directory`, and leaves the machine's lists and packages alone (apt.conf(5)). */
function aptConf(directory: string): string {
  const settings = {
    'Dir::Etc::sourcelist': join(directory, 'sources.list'),
    'Dir::Etc::sourceparts': '/dev/null',
    'Dir::State::lists': join(directory, 'lists'),
    'Dir::State::status': join(directory, 'status'),
    'Dir::Cache': join(directory, 'cache'),
    'Acquire::Languages': 'none',
    'Acquire::IndexTargets::deb::DEP-11::DefaultEnabled': 'false',
    // The user that apt drops to cannot reach this directory.
    'APT::Sandbox::User': 'root',
  }
  return Object.entries(settings)
    .map(([name, value]) => `${name} "${value}";\n`)
    .join('')
}

function sourcesList(packages: readonly DebianPackage[], { main, security }: Mirrors): string {
  const suites = [...new Set(packages.map(({ suite }) => suite))]
  const lines = suites.map((suite) => {
    const mirror = suite.endsWith('-security') ? security : main
    return `deb [arch=amd64 signed-by=${KEYRING}] ${mirror} ${suite} main\n`
  })
  return lines.join('')
}

/**
 * Downloads packages of Debian into a directory, without installing them. Resumes interrupted downloads.
 * @param state directory for the lists of packages
 * @throws MooringError `engine_unavailable` when apt does not use Debian here, or the versions are not offered any more
 */
export async function downloadDebian(
  packages: readonly DebianPackage[],
  { state, into }: { readonly state: string; readonly into: string },
): Promise<void> {
  const mirrors = await findMirrors()
  if (!mirrors) throw new MooringError('engine_unavailable', 'apt on this machine does not install from Debian')
  for (const name of ['lists/partial', 'cache/archives/partial']) await mkdir(join(state, name), { recursive: true })
  const conf = join(state, 'apt.conf')
  await writeFile(join(state, 'sources.list'), sourcesList(packages, mirrors))
  await writeFile(join(state, 'status'), '')
  await writeFile(conf, aptConf(state))
  const options = { cwd: into, env: { APT_CONFIG: conf, LC_ALL: 'C' } }
  await runTool('apt-get', ['update', '-qq'], options)
  const wanted = packages.map(({ name, version }) => `${name}:amd64=${version}`)
  await runTool('apt-get', ['download', '-qq', ...wanted], options)
}
