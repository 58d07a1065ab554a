import type { RequestRecord } from '../port.ts'
import { eachRequest } from '../request-text.ts'
import { REQUEST_DAYS } from '../retention-days.ts'
import { DAY_MS } from './layout.ts'
import { CHUNK_MS, ROW_LENGTH } from './chunk-bounds.ts'
import { timeOfIdText } from './record-id.ts'
import type { KeptRequest } from './sums.ts'
import type { TunnelNumbers } from './tunnel-numbers.ts'

/** Requests of one batch that are kept as one row: of one tunnel, and with ids of the same {@link CHUNK_MS}. */
export interface Chunk {
  readonly tunnel: number
  readonly day: number
  /** The lowest of its ids. */
  readonly id: string
  /** As `rowsOfTunnel` of request-text.ts reads it. */
  readonly text: string
  readonly requests: readonly KeptRequest[]
}

interface Growing extends Chunk {
  readonly period: number
  id: string
  text: string
  readonly requests: KeptRequest[]
}

/**
 * A batch as the file has it: the same batch always makes the same chunks. `text`: as request-text.ts has it; `now`: milliseconds since the
 * epoch. `refused`: how many are no records, or are of a day that is past its retention or still to come.
 * @throws TypeError when it is not whole records
 */
export function chunksOf(text: string, now: number, tunnels: TunnelNumbers): { chunks: readonly Chunk[]; refused: number } {
  const today = Math.floor(now / DAY_MS)
  const chunks: Growing[] = []
  /** Of each tunnel and period, the one that still grows. */
  const growing = new Map<string, Growing>()
  let chunk: Growing | undefined
  let refused = 0

  function chunkFor(tunnel: number, time: number, { id, length }: { readonly id: string; readonly length: number }): Growing {
    const period = Math.floor(time / CHUNK_MS)
    // Mostly it is that of the request before.
    if (chunk?.tunnel !== tunnel || chunk.period !== period) chunk = growing.get(`${tunnel} ${period}`)
    if (chunk && chunk.text.length + length <= ROW_LENGTH) return chunk
    chunk = { tunnel, period, day: Math.floor(time / DAY_MS), id, text: '', requests: [] }
    chunks.push(chunk)
    growing.set(`${tunnel} ${period}`, chunk)
    return chunk
  }

  eachRequest(text, (record, ofTunnel) => {
    const time = timeOf(record)
    const day = Math.floor(time / DAY_MS)
    if (!(day >= today - REQUEST_DAYS && day <= today + 1)) {
      refused += 1
      return
    }
    const tunnel = tunnels.of(record.tunnel)
    const into = chunkFor(tunnel, time, { id: record.id, length: ofTunnel.length })
    if (record.id < into.id) into.id = record.id
    into.text += ofTunnel
    into.requests.push(keptOf(record, tunnel, time))
  })
  return { chunks, refused }
}

/** When its id was made; NaN of what is no record. */
function timeOf({ id, at, status, durationMs, bytesIn, bytesOut }: RequestRecord): number {
  return Number.isFinite(at + status + durationMs + bytesIn + bytesOut) ? (timeOfIdText(id) ?? NaN) : NaN
}

function keptOf(record: RequestRecord, tunnel: number, time: number): KeptRequest {
  const { at, status, durationMs, bytesIn, bytesOut, sourceIp: ip, origin } = record
  return { tunnel, time, at, status, durationMs, bytesIn, bytesOut, edge: origin === 'edge', ip }
}
