import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import type { Instance } from '../api/answers.ts'

export type Row = Readonly<Record<string, unknown>>

/** Opens a session with the credentials in a response, over TLS with its CA where required. The caller ends the client. */
export async function login(instance: Instance, database = instance.name): Promise<pg.Client> {
  const { host, port, user, password, tls } = instance
  const ssl = tls.required ? { ca: tls.ca ?? '' } : false
  const client = new pg.Client({ host, port, user, password, database, ssl })
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

/** Returns the uri of an instance for a stock client, after saving the CA of the response in `directory`, as a caller must. */
export async function usableUri({ uri, tls, id }: Instance, directory: string): Promise<string> {
  if (!tls.required) return uri
  const url = new URL(uri)
  const file = join(directory, `${id}.crt`)
  await writeFile(file, tls.ca ?? '')
  url.searchParams.set('sslrootcert', file)
  return url.href
}
