import { Buffer } from 'node:buffer'
import { REQUEST_DAYS } from '../port.ts'
import { BatchScanner } from './batch-scanner.ts'
import { CHUNK_MS, ROW_LENGTH, DAY_MS } from './layout.ts'
import type { TunnelNumbers } from './ids.ts'

/** Length of a UUID as text. */
const ID_LENGTH = 36

/** Request that was added to the file. */
export interface KeptRequest {
  readonly tunnel: number
  /** Creation time of its id, in milliseconds since the epoch. */
  readonly time: number
  readonly at: number
  readonly status: number
  readonly durationMs: number
  readonly bytesIn: number
  readonly bytesOut: number
  readonly edge: boolean
  readonly ip: string
}

/** Requests of a batch that share a row: of one tunnel, with ids of the same {@link CHUNK_MS}. */
export class Chunk {
  readonly tunnel: number
  readonly requests: KeptRequest[] = []
  readonly #batch: Uint8Array
  readonly #time: number
  /** Start and end of each contiguous part of its lines in the batch. */
  readonly #parts: number[] = []
  #lowest: number
  #length = 0

  /**
   * Creates a chunk without requests. `time` is the creation time of the first request's id, `idAt` its position in the batch.
   */
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

  /** Lowest id of its requests. */
  get id(): string {
    return Buffer.from(this.#batch.subarray(this.#lowest, this.#lowest + ID_LENGTH)).toString('latin1')
  }

  /** Lines in the format of `rowsOfTunnel` of request-text.ts, UTF-8. */
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

  /** Adds the scanned request. Returns false when the row would become too long. */
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

  /** Whether the id at `start` sorts before the lowest one. */
  #isBefore(start: number): boolean {
    for (let place = 0; place < ID_LENGTH; place++) {
      const difference = (this.#batch[start + place] ?? 0) - (this.#batch[this.#lowest + place] ?? 0)
      if (difference !== 0) return difference < 0
    }
    return false
  }
}

/**
 * Divides a batch into rows of the file. The same batch always yields the same chunks. `batch` is in the format of
 * request-text.ts, `now` in milliseconds since the epoch. `refused` is the number of invalid requests and of requests past their
 * retention or in the future.
 * @throws MooringError `invalid_record` when the batch is truncated
 */
export function chunksOf(batch: Uint8Array, now: number, tunnels: TunnelNumbers): { chunks: readonly Chunk[]; refused: number } {
  const today = Math.floor(now / DAY_MS)
  const [first, last] = [(today - REQUEST_DAYS) * DAY_MS, (today + 2) * DAY_MS]
  const scanned = new BatchScanner(batch)
  const chunks: Chunk[] = []
  /** Chunks that may still grow, by tunnel and period. */
  const growing = new Map<number, Map<number, Chunk>>()
  let chunk: Chunk | undefined
  let refused = 0

  function add(tunnel: number): void {
    const period = Math.floor(scanned.time / CHUNK_MS)
    // Mostly it is the previous request's chunk.
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
