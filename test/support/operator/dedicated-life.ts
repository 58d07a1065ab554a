import { expect, vi } from 'vitest'
import { DatabaseServer } from '../../../crds/database-server.ts'
import { DedicatedDatabase } from '../../../crds/dedicated-database.ts'
import type { Motor } from '../../../crds/motor.ts'
import { conditionOf } from '../../../store/conditions.ts'
import { serverKeyOf } from '../../../operator/dedicated-database/resources.ts'
import { isRunning, startDedicated } from './dedicated.ts'
import { LATER } from '../patience.ts'

/** Creates a dedicated database, rotates its password, changes its plan, kills its server and deletes it, with a check of each step. */
export async function liveThrough(motor: Motor): Promise<void> {
  await using it = await startDedicated(motor)
  await it.create('orders')
  const made = await it.until('orders', isRunning)
  expect(made.status).toMatchObject({
    plan: 'small',
    storageGiB: 1,
    passwordVersion: 1,
    secretRef: { name: 'orders-credentials' },
  })
  await it.logIn(made)
  const first = await it.pidOf(made)

  const password = await it.secret('orders', 'password')
  await it.change('orders', { passwordVersion: 2 })
  const rotated = await it.until('orders', (now) => isRunning(now) && now.status?.passwordVersion === 2)
  expect(await it.secret('orders', 'password')).not.toBe(password)
  await it.logIn(rotated)
  expect(await it.pidOf(rotated)).toBe(first)

  await it.change('orders', { plan: 'medium' })
  const grown = await it.until('orders', (now) => isRunning(now) && now.status?.plan === 'medium')
  expect(grown.status?.storageGiB).toBe(2)
  const second = await it.pidOf(grown)
  expect(second).not.toBe(first)
  await it.logIn(grown)

  // The first restart may come before the failure is reported. The pause before a restart grows with each failure, so a later one is reported.
  await vi.waitFor(async () => {
    const { status } = it.caches.databases.get(it.key('orders')) ?? {}
    if (status?.phase !== 'failed') process.kill(await it.pidOf(grown), 'SIGKILL')
    expect(status?.phase).toBe('failed')
    expect(conditionOf({ status }, 'Ready')?.reason).toBe('ServerUnavailable')
  }, LATER)
  await it.logIn(await it.until('orders', isRunning))

  await it.store.delete(DedicatedDatabase, it.key('orders'))
  await it.gone('orders')
  expect(await it.store.get(DatabaseServer, serverKeyOf(made))).toBeUndefined()
}
