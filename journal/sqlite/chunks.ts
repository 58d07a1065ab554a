import { Buffer } from 'node:buffer'
import { REQUEST_DAYS } from '../retention-days.ts'
import { BatchScanner } from './batch-scanner.ts'
import { CHUNK_MS, ROW_LENGTH } from './chunk-bounds.ts'
import { DAY_MS } from './layout.ts'
import type { KeptRequest } from './sums.ts'
import type { TunnelNumbers } from './tunnel-numbers.ts'

/** Of the text of a UUID. */
const ID_LENGTH = 36

/** Requests of one batch that are kept as one row: of one tunnel, and with ids of the same {@link CHUNK_MS}. */
export class Chunk {
  readonly tunnel: number
  readonly requests: KeptRequest[] = []
  readonly #batch: Uint8Array
  readonly #time: number
  /** Where its lines are in the batch: the beginning and the end of each part that lies together. */
  readonly #parts: number[] = []
  #lowest: number
  #length = 0

  /** `time`: of an id; the request that has it is to be added. */
  constructor(batch: Uint8Array, tunnel: number, time: number, idAt: number) {
    this.#batch = batch
    this.tunnel = tunnel
    this.#time = time
    this.#lowest = idAt
  }

  get period(): number {
    return Math.floor(this.#time / CHUNK_MS)
  }

  get day(): number {
    return Math.floor(this.#time / DAY_MS)
  }

  /** The lowest of its ids. */
  get id(): string {
    return Buffer.from(this.#batch.subarray(this.#lowest, this.#lowest + ID_LENGTH)).toString('latin1')
  }

  /** As `rowsOfTunnel` of request-text.ts reads it, UTF-8. */
  get text(): Uint8Array {
    const [start, end] = this.#parts
    if (this.#parts.length === 2) return this.#batch.subarray(start, end)
    const text = Buffer.allocUnsafe(this.#length)
    let at = 0
    for (let part = 0; part < this.#parts.length; part += 2) {
      at = put(text, at, this.#batch.subarray(this.#parts[part], this.#parts[part + 1]))
    }
    return text
  }

  /** Takes what was scanned last, unless the row would be too long by it. */
  add(scanned: BatchScanner): boolean {
    const { start, end } = scanned
    const length = this.#length + end - start
    if (length > ROW_LENGTH && this.#length > 0) return false
    this.#length = length
    if (this.#parts.at(-1) === start) this.#parts[this.#parts.length - 1] = end
    else this.#parts.push(start, end)
    if (this.#isBefore(start)) this.#lowest = start
    this.requests.push(keptOf(scanned, this.tunnel))
    return true
  }

  /** Whether an id sorts before the lowest. */
  #isBefore(start: number): boolean {
    for (let place = 0; place < ID_LENGTH; place++) {
      const difference = (this.#batch[start + place] ?? 0) - (this.#batch[this.#lowest + place] ?? 0)
      if (difference !== 0) return difference < 0
    }
    return false
  }
}

/**
 * A batch as the file has it: the same batch always makes the same chunks. `batch`: as request-text.ts has it; `now`: milliseconds since the
 * epoch. `refused`: how many are no records, or are of a day that is past its retention or still to come.
 * @throws MooringError `invalid_record` when it is not whole
 */
export function chunksOf(batch: Uint8Array, now: number, tunnels: TunnelNumbers): { chunks: readonly Chunk[]; refused: number } {
  const today = Math.floor(now / DAY_MS)
  const [first, last] = [(today - REQUEST_DAYS) * DAY_MS, (today + 2) * DAY_MS]
  const scanned = new BatchScanner(batch)
  const chunks: Chunk[] = []
  /** Those that still grow, by tunnel and period. */
  const growing = new Map<number, Map<number, Chunk>>()
  let chunk: Chunk | undefined
  let refused = 0

  function add(tunnel: number): void {
    const period = Math.floor(scanned.time / CHUNK_MS)
    // Mostly it is that of the request before.
    if (chunk?.tunnel !== tunnel || chunk.period !== period) chunk = growing.get(tunnel)?.get(period)
    if (chunk?.add(scanned)) return
    chunk = new Chunk(batch, tunnel, scanned.time, scanned.start)
    chunk.add(scanned)
    chunks.push(chunk)
    growing.set(tunnel, (growing.get(tunnel) ?? new Map<number, Chunk>()).set(period, chunk))
  }

  while (scanned.next()) {
    if (scanned.time >= first && scanned.time < last && isRecord(scanned)) add(tunnels.of(scanned.tunnel))
    else refused += 1
  }
  return { chunks, refused }
}

function put(text: Buffer, start: number, part: Uint8Array): number {
  text.set(part, start)
  return start + part.length
}

function isRecord({ at, status, durationMs, bytesIn, bytesOut }: BatchScanner): boolean {
  return Number.isFinite(at + status + durationMs + bytesIn + bytesOut)
}

function keptOf({ time, at, status, durationMs, bytesIn, bytesOut, edge, ip }: BatchScanner, tunnel: number): KeptRequest {
  return { tunnel, time, at, status, durationMs, bytesIn, bytesOut, edge, ip }
}
