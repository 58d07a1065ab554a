import { type EventRow, numberOf } from '../event-rows.ts'
import type { RequestRecord } from '../port.ts'

export function requestOf(row: EventRow): RequestRecord {
  return {
    id: row.id as string,
    tunnel: row.tunnel as string,
    at: numberOf(row.at),
    method: row.method as string,
    path: row.path as string,
    status: row.status as number,
    durationMs: row.ms as number,
    bytesIn: numberOf(row.bytes_in),
    bytesOut: numberOf(row.bytes_out),
    sourceIp: row.ip as string,
    origin: row.edge === true ? 'edge' : 'backend',
    reason: row.reason as string | null,
    protocol: row.h2 === true ? 'h2' : 'http/1.1',
  }
}
