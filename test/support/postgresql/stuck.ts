import type pg from 'pg'

/** Members of the driver's connection that its types omit. */
interface Wire {
  readonly stream: { pause(): void }
  query(text: string): void
  sendCopyFromChunk(chunk: Buffer): void
}

const wireOf = (client: pg.Client): Wire => (client as pg.Client & { readonly connection: Wire }).connection

/**
 * Starts a statement that runs for hours in a loop without checks for interrupts. Neither a cancellation nor the end of its session stops it;
 * the end of the server does, with an error that is ignored.
 */
export async function loop(client: pg.Client): Promise<void> {
  await client.query(
    'CREATE TEMP TABLE endless AS SELECT array_agg(i) AS a, array_agg(-i - 1) AS b FROM generate_series(0, 1000000) AS i',
  )
  client.query('SELECT a && b FROM endless').catch(() => undefined)
}

/** Locks the rows of a tenant's own role and database in a transaction of its session. */
export async function lockItself(client: pg.Client, name: string): Promise<void> {
  await client.query(`BEGIN; ALTER ROLE ${name} PASSWORD 'x'; GRANT CONNECT ON DATABASE ${name} TO ${name}`)
}

const ignore = () => undefined

/** Starts `COPY … FROM STDIN` and sends no data. */
export function copyNothing(client: pg.Client, table: string): void {
  copy(client, table, ignore)
}

/** Starts `COPY … FROM STDIN` and sends one row that never ends, a byte at a time. */
export function copyOneRow(client: pg.Client, table: string): void {
  copy(client, table, (wire) => {
    const timer = setInterval(() => wire.sendCopyFromChunk(Buffer.from('1')), 100)
    client.once('end', () => clearInterval(timer))
  })
}

function copy(client: pg.Client, table: string, start: (wire: Wire) => void): void {
  client.query({
    submit: (wire: Wire) => wire.query(`COPY ${table} FROM STDIN`),
    ...{ handleCopyInResponse: start, handleError: ignore, handleReadyForQuery: ignore, handleCommandComplete: ignore },
  } as unknown as pg.Submittable)
}

/** Requests a result that is larger than all buffers, and reads none of it. */
export function readNothing(client: pg.Client): void {
  wireOf(client).stream.pause()
  client.query(`SELECT repeat('x', 1000) FROM generate_series(1, 100000)`).catch(() => undefined)
}
