import { glob } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import config from '../../vitest.config.ts'

const ROOT = join(import.meta.dirname, '../..')
const HIDDEN = ['**/node_modules/**', '**/.git/**', '**/dist/**']

interface Project {
  readonly test: { readonly name: string; readonly include: readonly string[]; readonly exclude?: readonly string[] }
}

async function filesOf(include: readonly string[], exclude: readonly string[]): Promise<readonly string[]> {
  const files: string[] = []
  for await (const path of glob([...include], { cwd: ROOT, exclude: [...HIDDEN, ...exclude] })) files.push(path)
  return files
}

const projects = (config.test?.projects ?? []) as readonly Project[]
const LONG = /\.long\.test\.tsx?$/

/** Files of a project, with its long ones, which it leaves out except in the full run. */
async function testsOf({ test: { include, exclude = [] } }: Project): Promise<readonly string[]> {
  return filesOf(
    include,
    exclude.filter((pattern) => !pattern.includes('.long.')),
  )
}

test('each test file is in a project', async () => {
  const all = await filesOf(['**/*.test.ts', '**/*.test.tsx'], [])
  const covered = new Set((await Promise.all(projects.map(testsOf))).flat())
  expect(all.length).toBeGreaterThan(100)
  expect(all.filter((path) => !covered.has(path))).toEqual([])
})

test('a restore of PostgreSQL is in the gate', async () => {
  const servers = await Promise.all(projects.filter(({ test: { name } }) => name === 'servers').map(testsOf))
  const backups = servers.flat().filter((path) => path.startsWith('test/servers/backup/'))
  expect(backups.filter((path) => !LONG.test(path))).toEqual(['test/servers/backup/restore.test.ts'])
})
