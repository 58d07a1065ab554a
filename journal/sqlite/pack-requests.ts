import { Buffer } from 'node:buffer'
import type { DatabaseSync } from 'node:sqlite'
import type { RequestRecord } from '../port.ts'
import { RequestLines } from '../request-lines.ts'
import { CHUNK_MS, ROW_LENGTH } from './chunk-bounds.ts'
import { idOfBytes, timeOfId } from './record-id.ts'

/** Uid in the lines of a row, which has the number of its tunnel instead. */
const NO_UID = ''

type Row = Readonly<Record<string, unknown>>

interface Chunk {
  readonly tunnel: number
  readonly id: Uint8Array
  readonly texts: Uint8Array[]
  length: number
}

/** Moves a day's requests from a table with a row for each to a table with chunks (chunks.ts). */
export function packRequests(db: DatabaseSync, from: string, to: string): void {
  const insert = db.prepare(`INSERT INTO ${to} (tunnel, id, records) VALUES (?, ?, CAST(? AS TEXT))`)
  const put = ({ tunnel, id, texts }: Chunk) => insert.run(tunnel, id, Buffer.concat(texts))
  const lines = new RequestLines(NO_UID)
  let chunk: Chunk | undefined
  // Reads one row at a time: a day may exceed the memory.
  for (const row of db.prepare(`SELECT * FROM ${from} ORDER BY tunnel, id`).iterate()) {
    const [tunnel, id] = [row.tunnel as number, row.id as Uint8Array]
    lines.add(recordOf(row))
    const text = lines.take()
    const joins = chunk?.tunnel === tunnel && periodOf(chunk.id) === periodOf(id) && chunk.length + text.length <= ROW_LENGTH
    if (!chunk || !joins) {
      if (chunk) put(chunk)
      chunk = { tunnel, id, texts: [], length: 0 }
    }
    chunk.texts.push(text)
    chunk.length += text.length
  }
  if (chunk) put(chunk)
}

const periodOf = (id: Uint8Array): number => Math.floor(timeOfId(id) / CHUNK_MS)

function recordOf(row: Row): RequestRecord {
  return {
    id: idOfBytes(row.id as Uint8Array),
    tunnel: NO_UID,
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
