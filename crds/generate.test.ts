import { appendFile, cp, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { customResourceDefinition, objectSchema } from './schema/definition.ts'
import { staleManifests, writeManifests } from './generate.ts'
import { CUSTOM_KINDS } from './index.ts'
import { defineKind } from './kind.ts'
import type { StructuralSchema } from './schema/structural-schema.ts'

const ROOT = join(import.meta.dirname, '..')
const FOLDERS = ['charts/mooring/crds', 'charts/mooring/generated']

/** Temporary copy of the committed files, in the same folders. */
async function copyOfManifests() {
  const path = await mkdtemp(join(tmpdir(), 'manifests-'))
  for (const folder of FOLDERS) {
    await mkdir(join(path, folder), { recursive: true })
    for (const name of await manifestsIn(folder)) await cp(join(ROOT, folder, name), join(path, folder, name))
  }
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true }) }
}

async function manifestsIn(folder: string): Promise<string[]> {
  return (await readdir(join(ROOT, folder))).filter((name) => name.endsWith('.yaml')).sort()
}

test('the committed files match their sources', async () => {
  expect(await staleManifests(ROOT)).toEqual([])
})

test('every kind has a file and the roles have one, all in the chart alone', async () => {
  const kinds = CUSTOM_KINDS.map((kind) => `mooring.dev_${kind.plural}.yaml`).sort()
  expect(await Promise.all(['crds', ...FOLDERS].map(manifestsIn))).toEqual([[], kinds, ['clusterroles.yaml']])
})

test.each([
  {
    does: 'altered',
    break: (root: string) => appendFile(join(root, 'charts/mooring/crds/mooring.dev_plans.yaml'), '\n'),
    stale: 'charts/mooring/crds/mooring.dev_plans.yaml',
  },
  {
    does: 'missing',
    break: (root: string) => rm(join(root, 'charts/mooring/generated/clusterroles.yaml')),
    stale: 'charts/mooring/generated/clusterroles.yaml',
  },
  {
    does: 'without a source',
    break: (root: string) => writeFile(join(root, 'charts/mooring/crds/mooring.dev_olds.yaml'), ''),
    stale: 'charts/mooring/crds/mooring.dev_olds.yaml',
  },
])('a file that is $does is reported, and corrected by the next run', async ({ break: damage, stale }) => {
  await using root = await copyOfManifests()
  await damage(root.path)
  expect(await staleManifests(root.path)).toEqual([stale])
  await writeManifests(root.path)
  expect(await staleManifests(root.path)).toEqual([])
})

test('a rule of a kind becomes a CEL rule of its spec, with the path of its field', () => {
  const rules = [{ cel: 'self.lo <= self.hi', message: 'lo is at most hi', field: 'spec.lo', holds: () => true }]
  const spec = z.object({ lo: z.int(), hi: z.int() })
  const parts = { shortNames: [], namespaced: true, description: '', status: z.object({}), columns: [] }
  const kind = defineKind({ kind: 'Span', plural: 'spans', spec, rules, ...parts })
  const schema = customResourceDefinition(kind).spec.versions[0]?.schema.openAPIV3Schema
  expect(schema?.properties?.spec?.['x-kubernetes-validations']).toEqual([
    { rule: 'self.lo <= self.hi', message: 'lo is at most hi', fieldPath: '.lo' },
  ])
})

/** Paths of all fields of a schema, with their descriptions. */
function fieldsOf(schema: StructuralSchema, path: string): { path: string; description: string | undefined }[] {
  const inner = Object.entries(schema.properties ?? {}).flatMap(([name, field]) =>
    fieldsOf(field, path ? `${path}.${name}` : name),
  )
  const items = schema.items ? fieldsOf({ description: path, ...schema.items }, `${path}[]`) : []
  return [{ path, description: schema.description }, ...items, ...inner]
}

test.each(CUSTOM_KINDS)('kubectl explains every field of $kind', (kind) => {
  const undescribed = fieldsOf(objectSchema(kind), '').filter(
    ({ path, description }) => !description && !path.startsWith('metadata'),
  )
  expect(undescribed.map(({ path }) => path)).toEqual([])
})

test.each(CUSTOM_KINDS)('kubectl get shows readiness and reason of $kind', ({ columns }) => {
  expect(columns.map(({ name }) => name)).toEqual(expect.arrayContaining(['Ready', 'Reason', 'Age']))
})

test.each(CUSTOM_KINDS)('every pattern of $kind has an error message', (kind) => {
  const patterns = JSON.stringify(objectSchema(kind)).match(/"pattern":"[^"]*"/g) ?? []
  expect(patterns).toEqual([])
})
