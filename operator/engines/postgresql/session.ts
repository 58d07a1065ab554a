import type pg from 'pg'

/** Session of the administrator, in the maintenance database unless stated otherwise. */
export interface Session {
  /** Runs one or several statements. Several statements in one text form one transaction. */
  query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]>
}
