import { Buffer } from 'node:buffer'
import type { DatabaseSync } from 'node:sqlite'
import type { RequestRecord } from '../port.ts'
import { requestBatch } from '../request-lines.ts'
import { CHUNK_MS, ROW_LENGTH } from './chunk-bounds.ts'
import { idOfBytes, timeOfId } from './record-id.ts'

/** The line of the empty one that `recordOf` gives. */
const NO_TUNNEL = '@\n'

type Row = Readonly<Record<string, unknown>>

/** Takes a day's requests from a table that has a row for each to one that has them in chunks (chunks.ts). */
export function packRequests(db: DatabaseSync, from: string, to: string): void {
  const put = db.prepare(`INSERT INTO ${to} (tunnel, id, records) VALUES (?, ?, ?)`)
  let chunk: { readonly tunnel: number; readonly id: Uint8Array; text: string } | undefined
  // One row at a time: a day may have more than memory holds.
  for (const row of db.prepare(`SELECT * FROM ${from} ORDER BY tunnel, id`).iterate()) {
    const [tunnel, id] = [row.tunnel as number, row.id as Uint8Array]
    const text = textOf(recordOf(row))
    const joins = chunk?.tunnel === tunnel && periodOf(chunk.id) === periodOf(id) && chunk.text.length + text.length <= ROW_LENGTH
    if (!chunk || !joins) {
      if (chunk) put.run(chunk.tunnel, chunk.id, chunk.text)
      chunk = { tunnel, id, text: '' }
    }
    chunk.text += text
  }
  if (chunk) put.run(chunk.tunnel, chunk.id, chunk.text)
}

/** Without the line of its tunnel: as `rowsOfTunnel` of request-text.ts reads it. */
const textOf = (record: RequestRecord): string => Buffer.from(requestBatch([record]).subarray(NO_TUNNEL.length)).toString()

const periodOf = (id: Uint8Array): number => Math.floor(timeOfId(id) / CHUNK_MS)

function recordOf(row: Row): RequestRecord {
  return {
    id: idOfBytes(row.id as Uint8Array),
    tunnel: '',
    at: row.at as number,
    method: row.method as string,
    path: row.path as string,
    status: row.status as number,
    durationMs: row.ms as number,
    bytesIn: row.bytes_in as number,
    bytesOut: row.bytes_out as number,
    sourceIp: row.ip as string,
    origin: row.edge === 1 ? 'edge' : 'backend',
    reason: row.reason as string | null,
    protocol: row.h2 === 1 ? 'h2' : 'http/1.1',
  }
}
