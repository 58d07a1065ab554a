import { REVOKE_UNBOUNDED } from './adopt.ts'
import type { Connection } from './connection.ts'
import { assertNoneTrusted } from './extensions.ts'

/**
 * Closes what a new PostgreSQL cluster leaves open in its own databases (docs/isolation.md). Tenants' databases are made closed. 14 lets
 * everybody create in schema `public`, and what is in template1 would be in every database made without naming another template.
 * @throws MooringError `server_unsafe`
 */
export async function harden(connection: Connection): Promise<void> {
  await assertNoneTrusted(connection)
  await connection.query('REVOKE ALL ON DATABASE postgres, template1 FROM PUBLIC')
  for (const database of ['postgres', 'template1']) {
    await connection.inside(database, (session) => session.query(`REVOKE ALL ON SCHEMA public FROM PUBLIC; ${REVOKE_UNBOUNDED}`))
  }
}
