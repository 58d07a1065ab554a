import { REVOKE_UNBOUNDED } from './adopt.ts'
import type { Connection } from './connection.ts'
import { assertNoneTrusted } from './extensions.ts'

/**
 * Revokes the default privileges of PUBLIC in the databases of a new PostgreSQL cluster (docs/isolation.md). Tenants' databases have none.
 * In 14 every role may create objects in schema `public`, and objects in template1 are copied into each database that names no template.
 * @throws MooringError `server_unsafe`
 */
export async function harden(connection: Connection): Promise<void> {
  await assertNoneTrusted(connection)
  await connection.query('REVOKE ALL ON DATABASE postgres, template1 FROM PUBLIC')
  for (const database of ['postgres', 'template1']) {
    await connection.inside(database, (session) => session.query(`REVOKE ALL ON SCHEMA public FROM PUBLIC; ${REVOKE_UNBOUNDED}`))
  }
}
