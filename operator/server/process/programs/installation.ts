import { createHash, randomUUID } from 'node:crypto'
import type { Dirent } from 'node:fs'
import { chmod, copyFile, lstat, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { z } from 'zod'
import { MooringError, hasCode } from '../../../../shared/errors.ts'
import { type Binaries, packageDirectory } from './binaries.ts'
import { type EngineUser, isReachable } from '../spawn/engine-user.ts'

/** Directory of copies, used when the engine's user cannot access node_modules (e.g. below a home directory of mode 0700). */
const COPIES = '/var/lib/mooring/engines'

const Links = z.array(
  z.object({ source: z.string().regex(/^native\/lib\/[^/]+$/), target: z.string().regex(/^native\/lib\/[^/]+$/) }),
)

/** Creates the libraries' symlinks: npm packs none, and the package's install script is not run. Safe to run concurrently. */
export async function linkLibraries(directory: string): Promise<void> {
  const links = Links.parse(JSON.parse(await readFile(join(directory, 'native/pg-symlinks.json'), 'utf8')))
  for (const { source, target } of links) {
    await symlink(basename(source), join(directory, target)).catch((error: unknown) => {
      if (!hasCode(error, 'EEXIST')) throw error
    })
  }
}

/**
 * Removes the mark by which a tenant may install an extension whose script then runs as superuser (PostgreSQL documentation, "Extension
 * Files"; docs/isolation.md). Safe to run concurrently.
 */
export async function distrustExtensions(directory: string): Promise<void> {
  const extensions = join(directory, 'native/share/postgresql/extension')
  const names = (await readdir(extensions)).filter((name) => name.endsWith('.control'))
  for (const file of names.map((name) => join(extensions, name))) {
    const text = await readFile(file, 'utf8')
    const distrusted = text.replaceAll(/^[ \t]*trusted\b.*\n?/gm, '')
    if (distrusted === text) continue
    const temporary = `${file}.${randomUUID()}`
    await writeFile(temporary, distrusted, { mode: 0o644 })
    await rename(temporary, file)
  }
}

interface InstallationDeps {
  readonly user: EngineUser
  /** Parent directory of the copies. */
  readonly copies?: string
}

/**
 * Returns the directory whose `native/` holds a package's programs, executable by `user`: the package itself, or a copy of it.
 * @throws MooringError `engine_not_installed`, `unsafe_directory`
 */
export async function installEngine(binaries: Binaries, { user, copies = COPIES }: InstallationDeps): Promise<string> {
  const source = await packageDirectory(binaries)
  if (!source) {
    throw new MooringError(
      'engine_not_installed',
      `package ${binaries.package} with version ${binaries.version} is not installed`,
    )
  }
  if (await isReachable(join(source, binaries.executable), user)) {
    await linkLibraries(source)
    await distrustExtensions(source)
    return source
  }
  return copyEngine(source, copies, `${binaries.package}-${binaries.version}`)
}

/** Copies once and atomically. An existing copy is reused if only Mooring could have created it. */
export async function copyEngine(source: string, copies: string, label: string): Promise<string> {
  const entries = await readdir(join(source, 'native'), { recursive: true, withFileTypes: true })
  const target = join(copies, `${label}-${await listingHash(source, entries)}`)
  for (const directory of [dirname(copies), copies]) await makeOpenDirectory(directory)
  if (!(await isOurs(target))) {
    const temporary = join(copies, `.${basename(target)}.${randomUUID()}`)
    await copyTree(source, temporary, entries)
    await linkLibraries(temporary)
    await distrustExtensions(temporary)
    // The first of several processes wins: rename(2) never replaces a directory that is not empty.
    await rename(temporary, target).catch((error: unknown) => {
      if (!hasCode(error, 'ENOTEMPTY') && !hasCode(error, 'EEXIST')) throw error
    })
    await rm(temporary, { recursive: true, force: true })
  }
  if (!(await isOurs(target))) throw unsafe(target)
  return target
}

/** Hash of a package's files. A published version never changes, so names and sizes identify it. */
async function listingHash(source: string, entries: readonly Dirent[]): Promise<string> {
  // Changes made to copies are part of the hash, which distinguishes them from copies of earlier versions.
  const hash = createHash('sha256').update('no trusted extensions\0')
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  for (const file of files.toSorted()) hash.update(`${relative(source, file)}\0${(await lstat(file)).size}\0`)
  return hash.digest('hex').slice(0, 12)
}

async function copyTree(source: string, target: string, entries: readonly Dirent[]): Promise<void> {
  const moved = (entry: Dirent): string => join(target, relative(source, join(entry.parentPath, entry.name)))
  const below = entries.filter((entry) => entry.isDirectory()).map(moved)
  for (const directory of [target, join(target, 'native'), ...below.toSorted()]) {
    await mkdir(directory)
    // The umask, which may be 077, restricts the mode of mkdir.
    await chmod(directory, 0o755)
  }
  const files = entries.filter((entry) => entry.isFile())
  await Promise.all(files.map((entry) => copyProgramFile(join(entry.parentPath, entry.name), moved(entry))))
}

async function copyProgramFile(from: string, to: string): Promise<void> {
  await copyFile(from, to)
  await chmod(to, (await lstat(from)).mode & 0o111 ? 0o755 : 0o644)
}

async function makeOpenDirectory(directory: string): Promise<void> {
  const made = await mkdir(directory, { recursive: true })
  if (made) await chmod(directory, 0o755)
  if (!(await isOurs(directory))) throw unsafe(directory)
}

/** Whether a directory (not a link) is writable only by our user: its programs are then trusted. */
async function isOurs(directory: string): Promise<boolean> {
  try {
    const found = await lstat(directory)
    return found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o022) === 0
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false
    throw error
  }
}

function unsafe(directory: string): MooringError {
  return new MooringError('unsafe_directory', `${directory} may be written to by other users, so no engine is run from it`)
}
