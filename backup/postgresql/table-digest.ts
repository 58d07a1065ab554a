import { createHash } from 'node:crypto'
import pg from 'pg'

export interface TableName {
  readonly schema: string
  readonly name: string
}

/** Content of a table: its rows in the order in which they are stored, which a restored server has, too. */
export interface TableDigest {
  readonly rows: number
  /** SHA-256 of the rows as COPY writes them, in hex. */
  readonly sha256: string
}

/** Settings on which the text of a row, or the order of rows, depends. A tenant may have set others for the database. */
const FIXED = `
  SET datestyle = 'ISO, YMD'; SET intervalstyle = 'postgres'; SET timezone = 'UTC'; SET extra_float_digits = 1; SET bytea_output = 'hex';
  SET lc_monetary = 'C'; SET client_encoding = 'UTF8'; SET synchronize_seqscans = off; SET quote_all_identifiers = off`

/** Prepares a session for {@link digestOf}. */
export async function fixOutput(client: pg.Client): Promise<void> {
  await client.query(FIXED)
}

/** Tables of tenants whose rows are in backups: neither temporary ones nor unlogged ones, which are empty after a restore. */
export const OWN_TABLES = `FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
  WHERE c.relkind OPERATOR(pg_catalog.=) 'r' AND c.relpersistence OPERATOR(pg_catalog.=) 'p'
    AND n.nspname OPERATOR(pg_catalog.<>) ALL ('{pg_catalog,information_schema,pg_toast}'::pg_catalog.name[])`

export const quoted = ({ schema, name }: TableName): string => `${pg.escapeIdentifier(schema)}.${pg.escapeIdentifier(name)}`

/**
 * Reads all rows of a table, without keeping them. COPY of a table calls the output functions of its types, which only a superuser can make: it
 * plans no query, so it calls no function of a tenant, whoever the role of the session is. In a query the planner would.
 */
export async function digestOf(client: pg.Client, table: TableName): Promise<TableDigest> {
  const hash = createHash('sha256')
  let rows = 0
  await new Promise<void>((resolve, reject) => {
    const onRow = (row: Buffer): void => {
      hash.update(row)
      rows += 1
    }
    client.query(new CopyOut(`COPY ${quoted(table)} TO STDOUT`, onRow, (error) => (error ? reject(error) : resolve())))
  })
  return { rows, sha256: hash.digest('hex') }
}

/** Statement that sends one message of the COPY protocol for each row (PostgreSQL, "COPY Operations"). */
class CopyOut extends pg.Query {
  private readonly onRow: (row: Buffer) => void

  constructor(text: string, onRow: (row: Buffer) => void, callback: (error: Error | undefined) => void) {
    super(text, callback)
    this.onRow = onRow
  }

  /** Called by the driver. */
  handleCopyData({ chunk }: { readonly chunk: Buffer }): void {
    this.onRow(chunk)
  }
}
