import { LoginState, type TenantState } from '../../../operator/engines/engine.ts'
import { postgresqlAdmin } from '../../../operator/engines/postgresql/postgresql.ts'
import { adminTargets } from './engines-of.ts'
import type { Mooring } from '../deployment/mooring.ts'

/** A tenant whose database and login are both there. */
export const WHOLE: TenantState = { database: true, login: LoginState.enabled }

/** What the catalogs of all engines of a data directory have of tenants, by name: all resources and nothing else, when all is well. */
export async function tenantsOf(dataDir: string): Promise<Readonly<Record<string, TenantState>>> {
  const tenants: (readonly [string, TenantState])[] = []
  for (const target of await adminTargets(dataDir)) {
    await using admin = postgresqlAdmin(target)
    tenants.push(...(await admin.catalog()).tenants)
  }
  return Object.fromEntries(tenants)
}

/** What {@link tenantsOf} must say: one whole tenant for each instance that the API lists. */
export async function tenantsListed(mooring: Mooring): Promise<Readonly<Record<string, TenantState>>> {
  const { body } = await mooring.call('GET', '/v1/instances?limit=200')
  return Object.fromEntries(body.data.instances.map(({ name }) => [name, WHOLE]))
}
