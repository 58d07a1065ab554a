import { createHash, randomUUID } from 'node:crypto'
import type { Dirent } from 'node:fs'
import { chmod, copyFile, lstat, mkdir, readdir, readFile, rename, symlink, writeFile } from 'node:fs/promises'
import { basename, join, relative } from 'node:path'
import { z } from 'zod'
import { MooringError, hasCode } from '../../../../shared/errors.ts'
import { type Binaries, directoryOf } from './binaries.ts'
import { publishDirectory } from '../files/open-directory.ts'
import { type EngineUser, isReachable } from '../spawn/engine-user.ts'
import { linkOwnEngine } from './own-engine.ts'

/** Directory of copies, used when the engine's user cannot access the binaries (e.g. below a home directory of mode 0700). */
export const COPIES = '/var/lib/mooring/engines'

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
 * Removes the setting `trusted`, by which a tenant may install an extension whose script then runs as superuser (PostgreSQL documentation, "Extension
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
  readonly copies?: string | undefined
  /** Parent directory of the installations of server programs of the machine; root uses `copies`. */
  readonly links?: string | undefined
  /** Directory of the engines that `npm run engines` installs. */
  readonly cache?: string | undefined
}

/** How binaries of a source become an installation. */
interface Preparation {
  /** Part of the directory that holds the engine's files. */
  readonly part: string
  /** Name of the changes that `apply` makes; distinguishes copies from those of earlier versions. */
  readonly changes: string
  /** Changes files of the directory. Safe to run repeatedly and concurrently. */
  readonly apply: (directory: string) => Promise<void>
}

const NO_TRUST = 'no trusted extensions'

const PREPARATIONS = {
  package: {
    part: 'native',
    changes: NO_TRUST,
    async apply(directory) {
      await linkLibraries(directory)
      await distrustExtensions(directory)
    },
  },
  cachedPostgresql: { part: 'native', changes: NO_TRUST, apply: distrustExtensions },
  cache: { part: '.', changes: 'none', apply: () => Promise.resolve() },
} satisfies Readonly<Record<string, Preparation>>

function preparationOf({ source, family }: Binaries): Preparation {
  if (source === 'package') return PREPARATIONS.package
  return family === 'postgresql' ? PREPARATIONS.cachedPostgresql : PREPARATIONS.cache
}

/**
 * Returns the directory of an engine's programs, which `user` can execute: that of the binaries, or a copy of it.
 * @throws MooringError `engine_not_installed`, `unsafe_directory`
 */
export async function installEngine(
  binaries: Binaries,
  { user, copies = COPIES, links = COPIES, cache }: InstallationDeps,
): Promise<string> {
  const { id, version, executable } = binaries
  const source = await directoryOf(binaries, cache)
  if (!source) throw new MooringError('engine_not_installed', `${id} with version ${version} is not installed`)
  if (binaries.source === 'program') {
    // Servers that root starts can reach only the directory of copies, which other users cannot write to.
    return linkOwnEngine(binaries, process.getuid?.() === 0 ? copies : links)
  }
  const preparation = preparationOf(binaries)
  if (await isReachable(join(source, executable), user)) {
    await preparation.apply(source)
    return source
  }
  return copyEngine(source, copies, { label: copyLabel(binaries), ...preparation })
}

/** Beginning of the names of the copies of an engine, before a hyphen and a hash. */
export function copyLabel({ id, source, version }: Binaries): string {
  return source === 'package' ? `${id}-${version}` : id
}

/** Copies once and atomically. An existing copy is reused if only Mooring could have created it. */
export async function copyEngine(
  source: string,
  copies: string,
  { label, part, changes, apply }: Preparation & { readonly label: string },
): Promise<string> {
  const entries = await readdir(join(source, part), { recursive: true, withFileTypes: true })
  const target = join(copies, `${label}-${await listingHash({ source, entries, changes })}`)
  await publishDirectory(target, async (temporary) => {
    await copyTree({ source, entries, part }, temporary)
    await apply(temporary)
  })
  return target
}

interface Listing {
  readonly source: string
  readonly entries: readonly Dirent[]
}

/** Hash of a directory's files. A published version never changes, so names and sizes identify it. */
async function listingHash({ source, entries, changes }: Listing & Pick<Preparation, 'changes'>): Promise<string> {
  const hash = createHash('sha256').update(`${changes}\0`)
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  for (const file of files.toSorted()) hash.update(`${relative(source, file)}\0${(await lstat(file)).size}\0`)
  return hash.digest('hex').slice(0, 12)
}

async function copyTree({ source, entries, part }: Listing & Pick<Preparation, 'part'>, target: string): Promise<void> {
  const moved = (entry: Dirent): string => join(target, relative(source, join(entry.parentPath, entry.name)))
  const below = entries.filter((entry) => entry.isDirectory()).map(moved)
  for (const directory of [target, join(target, part), ...below.toSorted()]) {
    await mkdir(directory, { recursive: true })
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
