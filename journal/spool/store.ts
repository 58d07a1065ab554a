import { mkdirSync } from 'node:fs'
import { MooringError } from '../../shared/errors.ts'
import { isSystemError } from '../thread/system-error.ts'
import { diskFiles, type Files } from './files.ts'
import { encodeFrame, type FrameKind } from './frame.ts'
import type { SpoolRequest } from './messages.ts'
import { SegmentLog } from './segment-log.ts'
import { type Piece, splitRequests } from './split-requests.ts'

/** Requests of one frame: taking them apart holds a thread up for a moment. */
const FRAME_RECORDS = 512
/** What a disk says that is full (write(2)). */
const FULL = new Set(['ENOSPC', 'EDQUOT'])

/** The disk does not take it now: it is full, or fails. */
export class SpoolError extends MooringError {
  readonly again = true

  constructor(cause: Error & { readonly code: string }) {
    super('unavailable', `the spool of the journal cannot be written now: ${cause.code}`, { cause })
  }
}

export interface SpoolStoreOptions {
  readonly directory: string
  /** On the disk at the most: see `keep`. */
  readonly bytes: number
  /** What had to go to make room. */
  readonly onDropped: (what: 'requests' | 'events', records: number) => void
  readonly files?: Files
}

/** The files of a spool: requests, which may be dropped, beside what may not. For a thread of its own. */
export interface SpoolStore {
  readonly events: SegmentLog
  readonly requests: SegmentLog
  /**
   * All of it, or as much that doing it again adds nothing new. Past the bound the oldest requests go; where there are none left, the oldest
   * files of events, for a volume that grows past its own limit takes all with it. On a disk that is full before that only requests go.
   * What waits for a sync is in no file that goes. An event that is on the disk may go before its sync is answered, and is acknowledged all
   * the same: it is counted as dropped, and if it were given again others would go for it.
   * @throws SpoolError
   */
  keep(shipment: Extract<SpoolRequest, { type: 'keep' }>): void
}

export function openSpoolStore({ directory, bytes, onDropped, files = diskFiles }: SpoolStoreOptions): SpoolStore {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const events = new SegmentLog({ directory, name: 'events', durable: true, files })
  const requests = new SegmentLog({ directory, name: 'requests', durable: false, files })
  /** Of a shipment that failed and comes again: what was added by then is not added once more, or a full disk would only get fuller. */
  const added = new Set<string>()

  function makeRoom(more: number): void {
    while (events.bytes + requests.bytes + more > bytes && (dropRequests() || dropEvents())) continue
  }

  /** Returns whether there are fewer bytes now: a file that has nothing in it makes no room. */
  function dropRequests(): boolean {
    const before = requests.bytes
    while (requests.bytes === before) {
      const lost = requests.drop()
      if (lost === undefined) return false
      if (lost > 0) onDropped('requests', lost)
    }
    return true
  }

  function dropEvents(): boolean {
    if (!events.hasOlder) return false
    const lost = events.drop() ?? 0
    if (lost > 0) onDropped('events', lost)
    return true
  }

  function append(log: SegmentLog, kind: FrameKind, { payload, records }: Piece): void {
    const frame = encodeFrame({ kind, records, payload })
    makeRoom(frame.length)
    for (;;) {
      try {
        log.append(frame, records)
        return
      } catch (error) {
        // Only there does dropping help: what a disk that fails still has may be shipped.
        if (!isSystemError(error) || !FULL.has(error.code) || !dropRequests()) throw error
      }
    }
  }

  function appendEvent(kind: FrameKind, json: string): void {
    if (added.has(json)) return
    append(events, kind, { payload: Buffer.from(json), records: 1 })
    added.add(json)
  }

  return {
    events,
    requests,
    keep(shipment) {
      try {
        for (const json of shipment.connections) appendEvent('connection', json)
        for (const json of shipment.audit) appendEvent('audit', json)
        for (const piece of splitRequests(Buffer.concat(shipment.requests), FRAME_RECORDS)) append(requests, 'requests', piece)
      } catch (error) {
        throw isSystemError(error) ? new SpoolError(error) : error
      }
      added.clear()
    },
  }
}
