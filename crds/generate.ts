import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { manifests } from './manifests.ts'

/** Names of the generated files in `folder` that are missing, differ from what their source says, or have no source any more. */
export async function staleManifests(folder: string): Promise<string[]> {
  const wanted = await manifests()
  const present = (await readdir(folder)).filter((name) => name.endsWith('.yaml'))
  const stale: string[] = []
  for (const name of new Set([...wanted.keys(), ...present])) {
    const found = present.includes(name) ? await readFile(join(folder, name), 'utf8') : undefined
    if (found !== wanted.get(name)) stale.push(name)
  }
  return stale.sort()
}

/** Makes every generated file in `folder` what its source says. */
export async function writeManifests(folder: string): Promise<void> {
  const wanted = await manifests()
  for (const name of await staleManifests(folder)) {
    const text = wanted.get(name)
    await (text === undefined ? rm(join(folder, name)) : writeFile(join(folder, name), text))
  }
}

/** `node crds/generate.ts [--check] [--folder …]`. Exit 1 when `--check` finds a stale file. */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { check: { type: 'boolean' }, folder: { type: 'string', default: import.meta.dirname } },
  })
  if (!values.check) return writeManifests(values.folder)
  for (const name of await staleManifests(values.folder)) {
    console.error(`crds/${name} is stale: run "npm run generate"`)
    process.exitCode = 1
  }
}

if (import.meta.main) await main()
