import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { manifests, ROLES_FILE } from './schema/manifests.ts'

const ROOT = join(import.meta.dirname, '..')
const isRoles = (name: string): boolean => name === ROLES_FILE

/** Folders of generated files, below the root of the repository, and which files each has. Nothing else in YAML may lie there. */
const FOLDERS: readonly { readonly folder: string; readonly has: (name: string) => boolean }[] = [
  { folder: 'crds', has: () => true },
  // Helm installs what lies here, once, and reads the other.
  { folder: 'charts/mooring/crds', has: (name) => !isRoles(name) },
  { folder: 'charts/mooring/generated', has: isRoles },
]

/** Path below the root of each generated file, there or wanted, with what it should hold; undefined: it should not be there. */
async function wantedFiles(root: string): Promise<ReadonlyMap<string, string | undefined>> {
  const texts = await manifests()
  const wanted = new Map<string, string | undefined>()
  for (const { folder, has } of FOLDERS) {
    const present = (await readdir(join(root, folder))).filter((name) => name.endsWith('.yaml'))
    for (const name of present) wanted.set(join(folder, name), undefined)
    for (const [name, text] of texts) if (has(name)) wanted.set(join(folder, name), text)
  }
  return wanted
}

/** Paths of the generated files below `root` that are missing, differ from what their source says, or have no source any more. */
export async function staleManifests(root: string): Promise<string[]> {
  const stale: string[] = []
  for (const [path, text] of await wantedFiles(root)) {
    if (text === undefined || (await textOf(join(root, path))) !== text) stale.push(path)
  }
  return stale.sort()
}

/** Makes every generated file below `root` what its source says. */
export async function writeManifests(root: string): Promise<void> {
  for (const [path, text] of await wantedFiles(root)) {
    await (text === undefined ? rm(join(root, path)) : writeFile(join(root, path), text))
  }
}

/** @returns undefined when there is none */
async function textOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

/** `node crds/generate.ts [--check] [--root …]`. Exit 1 when `--check` finds a stale file. */
async function main(): Promise<void> {
  const { values } = parseArgs({ options: { check: { type: 'boolean' }, root: { type: 'string', default: ROOT } } })
  if (!values.check) return writeManifests(values.root)
  for (const path of await staleManifests(values.root)) {
    console.error(`${path} is stale: run "npm run generate"`)
    process.exitCode = 1
  }
}

if (import.meta.main) await main()
