import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { documentedMetrics } from '../support/documented-metrics.ts'

const ROOT = join(import.meta.dirname, '../..')
const COMPONENTS = '{operator,apiserver,edge,journal,store,process,shared,embedded,backup}/**/*.ts'

/** Names of the metrics that the components register. Those of samples are named by a table. */
async function registeredMetrics(): Promise<readonly string[]> {
  const names: string[] = []
  for await (const path of glob(COMPONENTS, { cwd: ROOT, exclude: (name) => name.endsWith('.test.ts') })) {
    const text = await readFile(join(ROOT, path), 'utf8')
    if (!text.includes("from 'prom-client'")) continue
    names.push(...[...text.matchAll(/'(mooring_[a-z_]+)'/g)].map(([, name = '']) => name))
    if (!text.includes('name: `mooring_database_${name}`')) continue
    names.push(...[...text.matchAll(/^  (\w+): \['\w+', '/gm)].map(([, name = '']) => `mooring_database_${name}`))
  }
  return names
}

test('docs/metrics.md has each metric of the source, and no other', async () => {
  const documented = (await documentedMetrics()).map(({ name }) => name)
  expect(documented.toSorted()).toEqual([...new Set(await registeredMetrics())].toSorted())
})
