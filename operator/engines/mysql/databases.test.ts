import { mkdir, mkdtempDisposable, readdir, rmdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { codeOf } from '../../../shared/errors.ts'
import { EngineCode } from '../engine.ts'
import type { Connection, Session } from './connection.ts'
import { createDatabases } from './databases.ts'
import { Errno } from './errors.ts'
import { removeStrayDirectories } from './stray-directories.ts'

const STATEMENT = /^(CREATE|DROP) DATABASE (?:IF (?:NOT )?EXISTS )?`(\w+)`$/

/** MySQL 8.0 as far as its databases are concerned, on a real data directory. `onStray` is called when it finds a stray directory. */
function mysqlOn(data: string, onStray: () => Promise<void>): Session {
  const dictionary = new Set<string>()

  async function reject(errno: number): Promise<never> {
    await onStray()
    throw Object.assign(new Error('rejected'), { errno, sqlState: 'HY000' })
  }

  async function run(text: string): Promise<object[]> {
    if (text.includes('information_schema.SCHEMATA')) return [...dictionary].map((name) => ({ name }))
    const [, verb, name = ''] = STATEMENT.exec(text) ?? []
    const hasDirectory = (await readdir(data)).includes(name)
    if (verb === 'CREATE' && !dictionary.has(name)) {
      if (hasDirectory) await reject(Errno.directoryExists)
      await mkdir(join(data, name))
      dictionary.add(name)
    }
    if (verb === 'DROP') {
      if (!dictionary.delete(name) && hasDirectory) await reject(Errno.directoryWithoutDatabase)
      await rmdir(join(data, name)).catch(() => undefined)
    }
    return []
  }

  return { query: async (text) => (await run(text)) as never }
}

test('a database keeps its directory although the stray one was removed while its removal was requested again', async () => {
  await using directory = await mkdtempDisposable(join(tmpdir(), 'mooring-mysql-'))
  const data = directory.path
  await mkdir(join(data, 'shop'))
  let attempts = 0
  // The loop beside the server serves the first request just when the second attempt has found the stray directory.
  const session = mysqlOn(data, async () => {
    if (attempts === 2) await removeStrayDirectories(data)
  })
  const { claim } = createDatabases({ connection: { ...session, tenants: session } as unknown as Connection, family: 'mysql' })
  const claimed = () => {
    attempts += 1
    return claim({ name: 'shop', password: 'p' }, { connections: 5 }, {}).then(
      () => 'claimed',
      (error: unknown) => codeOf(error),
    )
  }

  while ((await claimed()) === EngineCode.unavailable && attempts < 10) if (attempts > 2) await removeStrayDirectories(data)
  await removeStrayDirectories(data)
  expect(attempts).toBeGreaterThan(2)
  expect(await readdir(data)).toContain('shop')
})
