import pg from 'pg'
import type { Instance } from '../api/answers.ts'

export type Row = Readonly<Record<string, unknown>>

/**
 * Opens a session with the credentials in a response, over TLS with its CA where required. The caller ends the client. A server that ends the session reports
 * that to its next query alone.
 */
export async function login(instance: Instance, database = instance.name): Promise<pg.Client> {
  const { host, port, user, password, tls } = instance
  const ssl = tls.required ? { ca: tls.ca ?? '' } : false
  const client = new pg.Client({ host, port, user, password, database, ssl })
  client.on('error', () => undefined)
  try {
    await client.connect()
    return client
  } catch (error) {
    await client.end()
    throw error
  }
}

/** Runs SQL in a session of its own. @throws DatabaseError with the SQLSTATE as `code` */
export async function query(instance: Instance, sql: string): Promise<readonly Row[]> {
  const client = await login(instance)
  try {
    return (await client.query<Row>(sql)).rows
  } finally {
    await client.end()
  }
}
