import { describe, expect, test } from 'vitest'
import { LoginState } from '../../../operator/engines/engine.ts'
import { underTest } from '../../support/families/motors-under-test.ts'
import { errno, mysqlBench, rows, until } from '../../support/mysql/bench.ts'
import { MOTORS } from '../../support/mysql/server.ts'
import { STUBBORN } from '../../support/mysql/stubborn.ts'

const ABSENT = { database: false, login: LoginState.absent }

describe.each(underTest(MOTORS))('a statement on $motor that no KILL ends, with a lock on a table,', ({ motor }) => {
  const bench = mysqlBench(motor)

  /** Lets the tenant run such a statement. */
  async function loop(name: string): Promise<void> {
    const session = await bench.as(await bench.tenant(name))
    await session.query('CREATE TABLE t (n INT)')
    await session.query('INSERT INTO t VALUES (1)')
    await bench.busy(session, `${STUBBORN} FROM t`)
  }

  test('delays no rotation or deletion of its tenant: the data are removed when it has ended', async () => {
    await loop('looping')
    const tenant = { name: 'looping', password: 'second' }
    await bench.admin.setPassword(tenant)
    await bench.admin.verify(tenant)
    await bench.admin.drop('looping', '0123abcd')
    expect(await bench.admin.find('looping')).toEqual(ABSENT)
    expect((await bench.admin.catalog()).tenants.has('looping')).toBe(false)
    expect(await errno(bench.as(tenant))).toBe(1045)
    expect(await bench.admin.discarded()).toEqual(['0123abcd'])
    await bench.admin.drop('looping', '0123abcd')
    expect(await bench.admin.tidy(0)).toBe(false)
    expect(await bench.admin.discarded()).toEqual(['0123abcd'])

    await bench.server.crash()
    await until(async () => {
      await bench.admin.tidy(0)
      return (await bench.admin.discarded()).length === 0
    })
    const root = await bench.root()
    expect(await rows(root, "SHOW DATABASES LIKE '%looping'")).toEqual([])
  })
})
