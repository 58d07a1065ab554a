import { chmod, mkdir, mkdtempDisposable, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Motor } from '../../../../crds/motor.ts'
import {
  BINARIES,
  binariesFor,
  candidatesFor,
  type CompatibleMotors,
  directoryOf,
  enginesCache,
  servableMotors,
} from './binaries.ts'

const rows: readonly { does: string; motor: Motor; compatible: CompatibleMotors; served: string | undefined }[] = [
  { does: 'serves an exact version', motor: 'postgresql-15.4.0', compatible: 'exact', served: 'postgresql-15' },
  { does: 'prefers the exact version', motor: 'postgresql-15.4.0', compatible: 'nearest', served: 'postgresql-15' },
  {
    does: 'serves an exact version of the cache',
    motor: 'postgresql-14.4.0',
    compatible: 'exact',
    served: 'zonky-postgresql-14.4.0',
  },
  { does: 'serves a near version when asked', motor: 'postgresql-14.4.0', compatible: 'nearest', served: 'postgresql-14' },
  { does: 'refuses a near MySQL', motor: 'mysql-8.0.29', compatible: 'exact', served: undefined },
  { does: 'serves a near MySQL when asked', motor: 'mysql-8.0.29', compatible: 'nearest', served: 'mysql-8.0.15' },
  { does: 'serves the next lower MongoDB when asked', motor: 'mongodb-7.0.2', compatible: 'nearest', served: 'mongodb-6.0.27' },
]

test.each(rows)('$does', async ({ motor, compatible, served }) => {
  await using at = await mkdtempDisposable(join(tmpdir(), 'mooring-cache-'))
  expect((await binariesFor(motor, compatible, { cache: at.path }))?.id).toBe(served)
})

test('no id is the beginning of another, as copies and blanks are named after it', () => {
  for (const { id } of BINARIES) expect(BINARIES.filter((other) => other.id.startsWith(id))).toHaveLength(1)
})

test.each([
  { env: { MOORING_ENGINES_CACHE: '/srv/engines', XDG_CACHE_HOME: '/cache' }, cache: '/srv/engines' },
  { env: { MOORING_ENGINES_CACHE: '', XDG_CACHE_HOME: '/cache' }, cache: '/cache/mooring/engines' },
  { env: {}, cache: join(homedir(), '.cache/mooring/engines') },
])('the cache of $env is $cache', ({ env, cache }) => {
  expect(enginesCache(env)).toBe(cache)
})

test('binaries of the cache are installed as soon as their server program is executable', async () => {
  await using at = await mkdtempDisposable(join(tmpdir(), 'mooring-cache-'))
  const [mariadb] = candidatesFor('mariadb-10.7.4', 'nearest')
  if (!mariadb) throw new Error('no binaries of MariaDB')
  expect(await directoryOf(mariadb, at.path)).toBeUndefined()
  const directory = join(at.path, mariadb.id)
  await mkdir(join(directory, 'bin'), { recursive: true })
  await writeFile(join(directory, mariadb.executable), '', { mode: 0o644 })
  expect(await directoryOf(mariadb, at.path)).toBeUndefined()
  await chmod(join(directory, mariadb.executable), 0o755)
  expect(await directoryOf(mariadb, at.path)).toBe(directory)
})

test.each([
  { listen: undefined, served: true },
  { listen: '127.0.0.1', served: true },
  { listen: '::1', served: true },
  { listen: '0.0.0.0', served: false },
  { listen: '192.0.2.1', served: false },
])('the MySQL 5.7 of the cache, which has no TLS 1.2, at $listen is served: $served', async ({ listen, served }) => {
  await using at = await mkdtempDisposable(join(tmpdir(), 'mooring-cache-'))
  for (const motor of ['mysql-5.7.38', 'mysql-8.0.29'] as const) {
    const { id = '', executable = '' } = candidatesFor(motor, 'nearest')[0] ?? {}
    await mkdir(join(at.path, id, 'bin'), { recursive: true })
    await writeFile(join(at.path, id, executable), '', { mode: 0o755 })
  }
  const motors = [...(await servableMotors('nearest', { cache: at.path, listen })).keys()]
  expect(motors).toContain('mysql-8.0.29')
  expect(motors.includes('mysql-5.7.38')).toBe(served)
})

test('the exact version of the cache is preferred to the near one of a package as soon as it is installed', async () => {
  await using at = await mkdtempDisposable(join(tmpdir(), 'mooring-cache-'))
  const versionOf = async (compatible: CompatibleMotors) =>
    (await servableMotors(compatible, { cache: at.path })).get('postgresql-14.4.0')?.version
  expect(await versionOf('exact')).toBeUndefined()
  expect(await versionOf('nearest')).toBe('14.5.0')
  await mkdir(join(at.path, 'zonky-postgresql-14.4.0/native/bin'), { recursive: true })
  await writeFile(join(at.path, 'zonky-postgresql-14.4.0/native/bin/postgres'), '', { mode: 0o755 })
  expect(await versionOf('exact')).toBe('14.4.0')
  expect(await versionOf('nearest')).toBe('14.4.0')
})

test('a motor whose server is not installed is not served', async () => {
  await using at = await mkdtempDisposable(join(tmpdir(), 'mooring-cache-'))
  expect([...(await servableMotors('nearest', { cache: at.path })).keys()]).toEqual(['postgresql-14.4.0', 'postgresql-15.4.0'])
})
