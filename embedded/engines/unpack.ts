import { chmod, copyFile, lstat, mkdir, readdir, readFile, readlink, rename, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Archive } from './archives.ts'
import { requireNewerCurl } from './curl-symbols.ts'
import type { Recipe } from './recipes.ts'
import { runTool } from './tools.ts'

/** Directories of shared libraries in Debian's packages. */
const LIBRARY_DIRECTORIES = ['lib/x86_64-linux-gnu', 'usr/lib/x86_64-linux-gnu']

/** Unpacks all archives into the empty directory `raw`, one over the other. */
export async function unpack(archives: ReadonlyMap<Archive, string>, { inner = [] }: Recipe, raw: string): Promise<void> {
  for (const [{ client }, file] of archives) {
    if (client === 'apt') await runTool('dpkg-deb', ['--extract', file, raw], { cwd: raw })
    else await runTool('unzip', ['-qo', file, '-d', raw], { cwd: raw })
  }
  for (const name of inner) await runTool('tar', ['-xf', name], { cwd: raw })
}

/**
 * Moves the files of a recipe and all shared libraries from `raw` into the empty directory `installation`. Every file there is readable by
 * every user, as engines run as other users, and no file is a link.
 */
export async function arrange(
  { files, libraryDirectory, olderCurl = false }: Recipe,
  raw: string,
  installation: string,
): Promise<void> {
  for (const name of LIBRARY_DIRECTORIES) await copyLibraries(join(raw, name), join(installation, 'lib'))
  if (libraryDirectory) await copyLibraries(join(raw, libraryDirectory.from), join(installation, libraryDirectory.to))
  for (const [to, from] of Object.entries(files)) {
    await mkdir(dirname(join(installation, to)), { recursive: true })
    await rename(join(raw, from), join(installation, to))
    if (olderCurl) await rewrite(join(installation, to), requireNewerCurl)
  }
  await openToAll(installation)
}

/** Copies libraries under the names by which programs load them (`libaio.so.1`), which are links in Debian's packages, or the files. */
async function copyLibraries(from: string, to: string): Promise<void> {
  const entries = await readdir(from, { withFileTypes: true }).catch(() => [])
  const libraries = entries.filter(({ name }) => /^lib.+\.so\.\d/.test(name))
  const links = libraries.filter((entry) => entry.isSymbolicLink()).map(({ name }) => name)
  const targets = new Set(await Promise.all(links.map(async (name) => basename(await readlink(join(from, name))))))
  await mkdir(to, { recursive: true })
  for (const { name } of libraries) {
    // The file behind a link is loaded by the link's name alone.
    if (links.includes(name) || !targets.has(name)) await copyFile(join(from, name), join(to, name))
  }
}

async function rewrite(file: string, change: (content: Buffer) => void): Promise<void> {
  const content = await readFile(file)
  change(content)
  await writeFile(file, content)
}

/** Sets the modes 0755 and 0644, independent of the umask and the archives. */
async function openToAll(path: string): Promise<void> {
  const found = await lstat(path)
  if (found.isDirectory()) {
    await chmod(path, 0o755)
    for (const name of await readdir(path)) await openToAll(join(path, name))
  } else await chmod(path, found.mode & 0o100 || basename(dirname(path)) === 'bin' ? 0o755 : 0o644)
}
