import type pg from 'pg'
import { MooringError } from '../../shared/errors.ts'

/**
 * Records in an outside database which installation owns the journal: two installations in one database would revoke each other's roles.
 * @param installation uid of the namespace mooring-system
 * @throws MooringError `journal_taken` when another installation owns it; errors of the driver
 */
export async function claim(client: pg.Client, installation: string): Promise<void> {
  await client.query(`
    CREATE SCHEMA IF NOT EXISTS journal;
    CREATE TABLE IF NOT EXISTS journal.installation (id text NOT NULL, only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one))`)
  await client.query('INSERT INTO journal.installation (id) VALUES ($1) ON CONFLICT DO NOTHING', [installation])
  const { rows } = await client.query<{ id: string }>('SELECT id FROM journal.installation')
  if (rows[0]?.id === installation) return
  throw new MooringError(
    'journal_taken',
    'the database of the journal belongs to another installation of Mooring: give each a database of its own, ' +
      'or, when that one is gone for good, DROP TABLE journal.installation',
  )
}
