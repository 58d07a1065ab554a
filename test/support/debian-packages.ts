import { execFile } from 'node:child_process'
import { access, mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'mooring-tests')

/** Programs that are not installed, and run from where they were unpacked. */
export interface UnpackedPackages {
  readonly root: string
  /** The command that runs a program of theirs with the libraries of theirs, to be followed by its arguments. */
  command(path: string): readonly string[]
}

/**
 * Unpacks packages of a Debian suite beside those of this machine, once: they stay in the user's cache. Their dependencies must be named too.
 * @throws Error when they cannot be had, which says why
 */
export async function unpackedPackages(suite: string, packages: readonly string[]): Promise<UnpackedPackages> {
  const root = join(CACHE, `${suite}-${packages[0] ?? ''}`)
  const there = await access(root).then(
    () => true,
    () => false,
  )
  if (!there) await unpack(suite, packages, root)
  const libraries = join(root, 'usr/lib/x86_64-linux-gnu')
  return {
    root,
    command: (path) => [join(libraries, 'ld-linux-x86-64.so.2'), '--library-path', libraries, join(root, path)],
  }
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
    throw new Error(`packages of Debian ${suite} cannot be had: they are needed to test with clients of another age`, {
      cause: error,
    })
  } finally {
    await rm(work, { recursive: true })
  }
}

const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'

/** Where this machine has its own packages of Debian from, as the beginning of a line of `sources.list`. */
async function mirror(): Promise<string> {
  const { stdout } = await run('apt-get', ['indextargets', '--format', '$(REPO_URI)', 'Created-By: Packages', 'Label: Debian'])
  const [uri = ''] = stdout.split('\n')
  if (uri === '') throw new Error('no package source of this machine is Debian’s')
  return `deb [signed-by=${KEYRING}] ${uri}`
}
