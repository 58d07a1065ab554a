import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { manifests, ROLES_FILE } from './schema/manifests.ts'

const ROOT = join(import.meta.dirname, '..')
const isRoles = (name: string): boolean => name === ROLES_FILE

/** Folders of generated files, relative to the root of the repository, and the files of each. Other YAML files in them are stale. */
const FOLDERS: readonly { readonly folder: string; readonly has: (name: string) => boolean }[] = [
  { folder: 'crds', has: () => true },
  // Helm installs the files of `crds` once; templates read those of `generated`.
  { folder: 'charts/mooring/crds', has: (name) => !isRoles(name) },
  { folder: 'charts/mooring/generated', has: isRoles },
]

/** Returns path (relative to the root) → expected contents of every generated file; undefined for a file that should not exist. */
async function expectedFiles(root: string): Promise<ReadonlyMap<string, string | undefined>> {
  const texts = await manifests()
  const expected = new Map<string, string | undefined>()
  for (const { folder, has } of FOLDERS) {
    const present = (await readdir(join(root, folder))).filter((name) => name.endsWith('.yaml'))
    for (const name of present) expected.set(join(folder, name), undefined)
    for (const [name, text] of texts) if (has(name)) expected.set(join(folder, name), text)
  }
  return expected
}

/** Returns the paths of generated files below `root` that are missing, differ from their source, or have no source any more. */
export async function staleManifests(root: string): Promise<string[]> {
  const stale: string[] = []
  for (const [path, text] of await expectedFiles(root)) {
    if (text === undefined || (await textOf(join(root, path))) !== text) stale.push(path)
  }
  return stale.sort()
}

/** Writes every generated file below `root`, and removes those without a source. */
export async function writeManifests(root: string): Promise<void> {
  for (const [path, text] of await expectedFiles(root)) {
    await (text === undefined ? rm(join(root, path)) : writeFile(join(root, path), text))
  }
}

/** Reads a file. @returns undefined when it does not exist */
async function textOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

/** Runs `node crds/generate.ts [--check] [--root …]`. With `--check` it writes nothing and exits with 1 when a file is stale. */
async function main(): Promise<void> {
  const { values } = parseArgs({ options: { check: { type: 'boolean' }, root: { type: 'string', default: ROOT } } })
  if (!values.check) return writeManifests(values.root)
  for (const path of await staleManifests(values.root)) {
    console.error(`${path} is stale: run "npm run generate"`)
    process.exitCode = 1
  }
}

if (import.meta.main) await main()
