import type { Connection } from 'mysql2/promise'
import { describe, expect, test } from 'vitest'
import { LoginState } from '../../../operator/engines/engine.ts'
import { underTest } from '../../support/families/motors-under-test.ts'
import { ask, errno, mysqlBench, rows } from '../../support/mysql/bench.ts'
import { stallLogin } from '../../support/mysql/stalled-login.ts'
import { MOTORS } from '../../support/mysql/server.ts'

describe.each(underTest(MOTORS))('the password of a tenant on $motor', ({ motor }) => {
  const bench = mysqlBench(motor)

  test('setPassword ends every session of the former password, which works no more', async () => {
    const tenant = await bench.tenant('rotated')
    const session = await bench.as(tenant)
    await bench.admin.setPassword({ ...tenant, password: 'new\'\\"%_' })
    await expect(session.query('SELECT 1')).rejects.toThrow()
    expect(await errno(bench.as(tenant))).toBe(1045)
    await bench.admin.verify({ ...tenant, password: 'new\'\\"%_' })
  })

  test('setPassword of a disabled login leaves it disabled', async () => {
    const tenant = await bench.tenant('off')
    await bench.admin.disableLogin('off')
    await bench.admin.setPassword({ ...tenant, password: 'second' })
    expect(await bench.admin.find('off')).toEqual({ database: true, login: LoginState.disabled })
    await bench.admin.enableLogin('off')
    await bench.admin.verify({ ...tenant, password: 'second' })
  })

  test('setPassword shuts out a session that sets passwords and logs in with them all the time', async () => {
    const tenant = await bench.tenant('fighter')
    const fighting = new AbortController()
    /** Returns the last password that was set before the session ended. */
    const setPasswords = async (session: Connection, before: string): Promise<string> => {
      const third = before === 'third-0' ? 'third-1' : 'third-0'
      // MariaDB takes a hash or PASSWORD(…), MySQL 8.0 a text.
      const set = motor === 'mysql-8.0.29' ? `SET PASSWORD = '${third}'` : `SET PASSWORD = PASSWORD('${third}')`
      const isSet = await session.query(set).then(
        () => true,
        () => false,
      )
      return isSet && !fighting.signal.aborted ? setPasswords(session, third) : before
    }
    const fight = async () => {
      let password = tenant.password
      while (!fighting.signal.aborted) {
        const session = await bench.as({ ...tenant, password }).catch(() => undefined)
        if (session) password = await setPasswords(session, password)
        session?.destroy()
        await new Promise((resolve) => setImmediate(resolve))
      }
    }
    const fights = [fight(), fight(), fight()]
    await bench.admin.setPassword({ ...tenant, password: 'last' })
    await bench.admin.verify({ ...tenant, password: 'last' })
    fighting.abort()
    await Promise.all(fights)
    await bench.admin.verify({ ...tenant, password: 'last' })
    for (const password of ['third-0', 'third-1']) expect(await errno(bench.as({ ...tenant, password }))).toBe(1045)
  })

  test('clients that log in again and again delay no rotation, disabling or drop', async () => {
    const tenant = await bench.tenant('knocker')
    const knocking = new AbortController()
    const knock = async () => {
      while (!knocking.signal.aborted) (await bench.as(tenant).catch(() => undefined))?.destroy()
    }
    const knocks = Array.from({ length: 40 }, knock)
    await bench.admin.setPassword({ ...tenant, password: 'second' })
    await bench.admin.setPassword(tenant)
    await bench.admin.disableLogin('knocker')
    await bench.admin.drop('knocker')
    knocking.abort()
    await Promise.all(knocks)
  })

  test.each([
    { step: 'setPassword', run: (name: string) => bench.admin.setPassword({ name, password: 'second' }) },
    { step: 'disableLogin', run: (name: string) => bench.admin.disableLogin(name) },
    { step: 'reset', run: (name: string) => bench.admin.reset(name, {}) },
    { step: 'drop', run: (name: string) => bench.admin.drop(name) },
  ])('$step ends a login that waits in its handshake, which the server would accept by the former password', async ({ run }) => {
    await bench.tenant('staller')
    const root = await bench.root()
    using login = await stallLogin(bench.server.target.port, 'staller')
    await run('staller')
    const waiting = "SELECT USER FROM information_schema.PROCESSLIST WHERE USER IN ('staller', 'unauthenticated user')"
    expect(await rows(root, waiting)).toEqual([])
    await login.closed
  })

  test('setPassword repeated after a crash in its middle opens the login again, and findChangedPasswords lists it until then', async () => {
    const tenant = await bench.tenant('cut')
    const root = await bench.root()
    await root.query(`ALTER USER 'cut'@'%' IDENTIFIED BY 'second' REQUIRE SUBJECT 'blocked'`)
    expect(await errno(bench.as({ ...tenant, password: 'second' }))).toBe(1045)
    expect(await bench.admin.findChangedPasswords([{ ...tenant, password: 'second' }])).toEqual(['cut'])
    await bench.admin.setPassword({ ...tenant, password: 'second' })
    await bench.admin.verify({ ...tenant, password: 'second' })
    expect(await bench.admin.findChangedPasswords([{ ...tenant, password: 'second' }])).toEqual([])
  })

  test('a client that has neither TLS nor RSA logs in, by the plugin that the server names first', async () => {
    const { name: user, password, name: database } = await bench.tenant('plain')
    const refuse = () => () => {
      throw new Error('this client does not have the plugin')
    }
    const authPlugins = { caching_sha2_password: refuse, sha256_password: refuse, client_ed25519: refuse }
    const session = await bench.server.client({ user, password, database, authPlugins })
    expect(await ask(session, "SELECT SUBSTRING_INDEX(CURRENT_USER(), '@', 1)")).toBe('plain')
  })

  // Mooring created such accounts before 2026-11-28.
  test.each(motor === 'mysql-8.0.29' ? ['caching_sha2_password'] : [])(
    'an account of %s works, and gets another plugin with its next password',
    async (former) => {
      const tenant = await bench.tenant('former')
      const root = await bench.root()
      const plugin = () => ask(root, "SELECT plugin FROM mysql.user WHERE User = 'former'")
      await root.query(`ALTER USER 'former'@'%' IDENTIFIED WITH ${former} BY '${tenant.password}'`)
      await bench.admin.verify(tenant)
      expect(await bench.admin.findChangedPasswords([tenant])).toEqual([])
      expect(await plugin()).toBe(former)
      await bench.admin.setPassword(tenant)
      expect(await plugin()).toBe('mysql_native_password')
      await bench.admin.verify(tenant)
    },
  )

  test('findChangedPasswords finds a password that the tenant has changed, also of disabled logins and without connections left', async () => {
    const tenants = await Promise.all(['same', 'changed', 'locked', 'crowded'].map((name) => bench.tenant(name)))
    const [, changed, , crowded] = tenants
    if (!changed || !crowded) throw new Error('no tenants')
    expect(await bench.admin.findChangedPasswords([...tenants, { name: 'missing', password: 'x' }])).toEqual([])
    await bench.admin.disableLogin('locked')
    await Promise.all(Array.from({ length: 12 }, () => bench.as(crowded)))
    const session = await bench.as(changed)
    await session.query(motor === 'mysql-8.0.29' ? "SET PASSWORD = 'own'" : "SET PASSWORD = PASSWORD('own')")
    const doubtful = tenants.map(({ name, password }) => ({ name, password: name === 'locked' ? 'never' : password }))
    expect(await bench.admin.findChangedPasswords(doubtful)).toEqual(['changed', 'locked'])
    expect(await bench.admin.findChangedPasswords(tenants)).toEqual(['changed'])
    await bench.admin.setPassword(changed)
    expect(await bench.admin.findChangedPasswords(tenants)).toEqual([])
  })

  test('no password is in a log of the server, nor in an error', async () => {
    const tenant = { name: 'secretive', password: 'very-secret-password' }
    await bench.tenant('secretive')
    await bench.admin.setPassword(tenant)
    await bench.admin.verify(tenant)
    const failed: unknown = await bench.admin.setPassword({ ...tenant, name: 'nobodyhere' }).catch((error: unknown) => error)
    const root = await bench.root()
    await root.query("ALTER USER 'secretive'@'%' REQUIRE SUBJECT 'x'")
    const refused: unknown = await bench.admin.verify(tenant).catch((error: unknown) => error)
    const { inspect } = await import('node:util')
    expect(inspect([failed, refused], { depth: 20, showHidden: true })).not.toContain('very-secret')
    expect(await bench.server.log()).not.toContain('very-secret')
  })
})
