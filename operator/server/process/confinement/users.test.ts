import { chown, mkdir, mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { serverPaths } from '../files/paths.ts'
import { idFor, usableRange, userOf } from './users.ts'

const isRoot = process.getuid?.() === 0

test.each([
  { what: 'all ids', map: '         0          0 4294967295\n', first: 1_900_000_000 },
  { what: 'the ids of a container', map: '0 100000 65536\n', first: 20_000 },
  { what: 'several ranges', map: '0 1000 1\n1 100000 65535\n', first: 20_000 },
  { what: 'one id', map: '0 1000 1\n', first: undefined },
])('in a user namespace with $what servers get ids from $first on', ({ map, first }) => {
  expect(usableRange(map)?.first).toBe(first)
})

test('the id of a server is stable, and differs from ids in use', () => {
  const range = { first: 20_000, count: 40_000 }
  const id = idFor('a', range, new Set())
  expect(id).toBe(idFor('a', range, new Set()))
  expect(id).toBeGreaterThanOrEqual(20_000)
  expect(id).toBeLessThan(60_000)
  expect(idFor('a', range, new Set([id]))).not.toBe(id)
  expect(idFor('a', { first: 7, count: 1 }, new Set())).toBe(7)
  expect(() => idFor('a', { first: 7, count: 1 }, new Set([7]))).toThrow('no user id is left')
})

test('a server gets a user of its own before there is a directory, keeps it, and shares it with no other', async () => {
  await using scratch = await mkdtempDisposable(join(tmpdir(), 'mooring-users-'))
  const servers = join(scratch.path, 'servers')
  const { uid } = await userOf(servers, 'one')
  expect((await userOf(servers, 'one')).uid).toBe(uid)
  expect((await userOf(servers, 'two')).uid).not.toBe(uid)
  if (!isRoot) return
  const { data } = serverPaths(servers, 'two')
  await mkdir(data, { recursive: true })
  await chown(data, uid, uid)
  expect((await userOf(servers, 'two')).uid).toBe(uid)
  expect((await userOf(servers, 'one')).uid).not.toBe(uid)
})
