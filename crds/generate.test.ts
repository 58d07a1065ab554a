import { appendFile, cp, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { customResourceDefinition } from './definition.ts'
import { staleManifests, writeManifests } from './generate.ts'
import { CUSTOM_KINDS } from './index.ts'
import { defineKind } from './kind.ts'

const committed = import.meta.dirname

/** A copy of the committed files that is removed afterwards. */
async function copyOfManifests() {
  const path = await mkdtemp(join(tmpdir(), 'manifests-'))
  for (const name of await readdir(committed)) {
    if (name.endsWith('.yaml')) await cp(join(committed, name), join(path, name))
  }
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true }) }
}

test('the committed files are what their sources say', async () => {
  expect(await staleManifests(committed)).toEqual([])
})

test('there is a file for every kind, and one for the roles', async () => {
  const expected = [...CUSTOM_KINDS.map((kind) => `mooring.dev_${kind.plural}.yaml`), 'clusterroles.yaml'].sort()
  const present = (await readdir(committed)).filter((name) => name.endsWith('.yaml')).sort()
  expect(present).toEqual(expected)
})

test.each([
  {
    does: 'altered',
    break: (folder: string) => appendFile(join(folder, 'mooring.dev_plans.yaml'), '\n'),
    stale: 'mooring.dev_plans.yaml',
  },
  { does: 'missing', break: (folder: string) => rm(join(folder, 'clusterroles.yaml')), stale: 'clusterroles.yaml' },
  {
    does: 'without a source',
    break: (folder: string) => writeFile(join(folder, 'mooring.dev_olds.yaml'), ''),
    stale: 'mooring.dev_olds.yaml',
  },
])('a file that is $does is named, and put right by the next run', async ({ break: damage, stale }) => {
  await using folder = await copyOfManifests()
  await damage(folder.path)
  expect(await staleManifests(folder.path)).toEqual([stale])
  await writeManifests(folder.path)
  expect(await staleManifests(folder.path)).toEqual([])
})

test('a rule of a kind becomes CEL at its spec, with the path of the field it is about', () => {
  const rules = [{ cel: 'self.lo <= self.hi', message: 'lo is at most hi', field: 'spec.lo', holds: () => true }]
  const spec = z.object({ lo: z.int(), hi: z.int() })
  const parts = { shortNames: [], namespaced: true, description: '', status: z.object({}), columns: [] }
  const kind = defineKind({ kind: 'Span', plural: 'spans', spec, rules, ...parts })
  const schema = customResourceDefinition(kind).spec.versions[0]?.schema.openAPIV3Schema
  expect(schema?.properties?.spec?.['x-kubernetes-validations']).toEqual([
    { rule: 'self.lo <= self.hi', message: 'lo is at most hi', fieldPath: '.lo' },
  ])
})
