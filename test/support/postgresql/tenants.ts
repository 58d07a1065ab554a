import { LoginState, type TenantState } from '../../../operator/engines/engine.ts'
import { postgresqlAdmin } from '../../../operator/engines/postgresql/postgresql.ts'
import { adminTargets } from './engines-of.ts'
import type { Mooring } from '../deployment/mooring.ts'

/** State of a tenant with database and login. */
export const WHOLE: TenantState = { database: true, login: LoginState.enabled }

/** Returns the tenants in the catalogs of all servers of a data directory, by name. They must match the resources exactly. */
export async function tenantsOf(dataDir: string): Promise<Readonly<Record<string, TenantState>>> {
  const tenants: (readonly [string, TenantState])[] = []
  for (const target of await adminTargets(dataDir)) {
    await using admin = postgresqlAdmin(target)
    tenants.push(...(await admin.catalog()).tenants)
  }
  return Object.fromEntries(tenants)
}

/** Returns the expected result of {@link tenantsOf}: one complete tenant for each instance that the API lists. */
export async function tenantsListed(mooring: Mooring): Promise<Readonly<Record<string, TenantState>>> {
  const { body } = await mooring.call('GET', '/v1/instances?limit=200')
  return Object.fromEntries(body.data.instances.map(({ name }) => [name, WHOLE]))
}
