import { expect } from 'vitest'
import type { EngineAdmin } from '../../operator/engines/engine.ts'

interface ExporterLogin {
  readonly admin: Pick<EngineAdmin, 'monitor' | 'catalog'>
  /** Logs in as the exporter. */
  readonly logIn: (password: string) => Promise<unknown>
}

/** Gives the exporter's login, which has the password `first`, another one, then drops it. Expects the login to be no tenant beside the only one. */
export async function expectReplacedAndDropped({ admin, logIn }: ExporterLogin): Promise<void> {
  await admin.monitor('second')
  await expect(logIn('first')).rejects.toThrow()
  await logIn('second')
  expect((await admin.catalog()).tenants.size).toBe(1)
  await admin.monitor(undefined)
  await admin.monitor(undefined)
  await expect(logIn('second')).rejects.toThrow()
}
