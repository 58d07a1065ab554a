import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { access, mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
/** Directory of programs that the tests download. */
export const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'mooring-tests')

/** Programs that run from an unpacked package, without installation. */
export interface UnpackedPackages {
  readonly root: string
  /** Returns the command that runs a program with the libraries of the packages; its arguments follow. */
  command(path: string): readonly string[]
}

/**
 * Unpacks packages of a Debian suite once, into the user's cache. Their dependencies must be listed too.
 * @throws Error with the reason when they are not available
 */
export async function unpackedPackages(suite: string, packages: readonly string[]): Promise<UnpackedPackages> {
  const root = join(CACHE, `${suite}-${packages[0] ?? ''}`)
  const there = await access(root).then(
    () => true,
    () => false,
  )
  if (!there) await unpack(suite, packages, root)
  // Debian 12 has libraries in both.
  const libraries = ['usr/lib/x86_64-linux-gnu', 'lib/x86_64-linux-gnu'].map((folder) => join(root, folder))
  const loader = libraries.map((folder) => join(folder, 'ld-linux-x86-64.so.2')).find((path) => existsSync(path)) ?? ''
  return { root, command: (path) => [loader, '--library-path', libraries.join(':'), join(root, path)] }
}

async function unpack(suite: string, packages: readonly string[], root: string): Promise<void> {
  await mkdir(CACHE, { recursive: true })
  const work = await mkdtemp(join(CACHE, 'unpacking-'))
  try {
    const inside = (name: string) => join(work, name)
    await mkdir(inside('lists/partial'), { recursive: true })
    await mkdir(inside('archives/partial'), { recursive: true })
    await writeFile(inside('sources.list'), `${await mirror()} ${suite} main\n`)
    const settings = {
      'Dir::Etc::SourceList': inside('sources.list'),
      'Dir::Etc::SourceParts': '/dev/null',
      'Dir::State::Lists': inside('lists'),
      'Dir::State::status': '/dev/null',
      'Dir::Cache': work,
      'APT::Sandbox::User': '',
      'Acquire::IndexTargets::deb::DEP-11::DefaultEnabled': 'false',
      'Acquire::Languages': 'none',
    }
    const options = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`])
    await run('apt-get', [...options, '-qq', 'update'], { cwd: inside('archives') })
    await run('apt-get', [...options, '-qq', 'download', ...packages], { cwd: inside('archives') })
    for (const file of await readdir(inside('archives'))) {
      if (file.endsWith('.deb')) await run('dpkg-deb', ['--extract', join(inside('archives'), file), inside('root')])
    }
    await rename(inside('root'), root)
  } catch (error) {
    throw new Error(`packages of Debian ${suite} are not available: the tests need these versions of clients`, {
      cause: error,
    })
  } finally {
    await rm(work, { recursive: true })
  }
}

const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'

/** Returns the package source of this machine, as the beginning of a line of `sources.list`. */
async function mirror(): Promise<string> {
  const { stdout } = await run('apt-get', ['indextargets', '--format', '$(REPO_URI)', 'Created-By: Packages', 'Label: Debian'])
  const [uri = ''] = stdout.split('\n')
  if (uri === '') throw new Error('this machine has no package source of Debian')
  return `deb [signed-by=${KEYRING}] ${uri}`
}
