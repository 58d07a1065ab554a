import { expect, test } from 'vitest'
import type { DedicatedDatabase } from '../../../crds/dedicated-database.ts'
import { partsOf } from '../../../crds/motor.ts'
import { openRelay } from '../../support/access/relay.ts'
import { HARMLESS, openTenantSession } from '../../support/access/tenant-session.ts'
import { motorsUnderTest } from '../../support/families/motors-under-test.ts'
import { type Changes, isRunning, startDedicated } from '../../support/operator/dedicated.ts'

test.each(motorsUnderTest())('the firewall rules of a database of %s are in force when its status says so', async (motor) => {
  const { family } = partsOf(motor)
  await using it = await startDedicated(motor)
  await using opened = new AsyncDisposableStack()

  /** Logs in from a local address, and returns a function that uses the session. */
  async function sessionFrom(address: string, { status }: DedicatedDatabase): Promise<() => Promise<unknown>> {
    const relay = opened.use(await openRelay({ host: status?.host ?? '', port: status?.port ?? 0, from: address }))
    const [name, password] = [await it.secret('orders', 'username'), await it.secret('orders', 'password')]
    const session = await openTenantSession(family, { name, password, port: relay.port, tls: false })
    opened.defer(() => session.end().catch(() => undefined))
    const use = () => session.run(HARMLESS[family])
    await use()
    return use
  }

  async function change(spec: Changes): Promise<DedicatedDatabase> {
    const { metadata } = await it.change('orders', spec)
    return it.until('orders', (now) => isRunning(now) && now.metadata.generation === metadata.generation)
  }

  await it.create('orders', { firewallRules: [{ cidr: '127.0.0.2' }] })
  const made = await it.until('orders', isRunning)
  const pid = await it.pidOf(made)
  const second = await sessionFrom('127.0.0.2', made)
  await expect(sessionFrom('127.0.0.1', made)).rejects.toThrow()

  const moved = await change({ firewallRules: [{ cidr: '127.0.0.1/32', description: 'office' }] })
  await expect(second()).rejects.toThrow()
  const first = await sessionFrom('127.0.0.1', moved)

  const open = await change({ firewallRules: null })
  await sessionFrom('127.0.0.2', open)
  await first()

  const shut = await change({ firewallRules: [] })
  await expect(first()).rejects.toThrow()
  await expect(sessionFrom('127.0.0.1', shut)).rejects.toThrow()
  expect(await it.pidOf(shut)).toBe(pid)

  const closed = await change({ privateNetwork: true })
  expect(closed.status?.host).toBe('127.0.0.1')
  await sessionFrom('127.0.0.1', closed)
})
