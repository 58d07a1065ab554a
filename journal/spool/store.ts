import { mkdirSync } from 'node:fs'
import { MooringError } from '../../shared/errors.ts'
import { isSystemError } from '../serve-thread.ts'
import { diskFiles, type Files } from './files.ts'
import { encodeFrame, type FrameKind, type BatchPart, splitRequests } from './frame.ts'
import type { SpoolRequest } from './messages.ts'
import { SegmentLog } from './segment-log.ts'

/** Maximum number of requests in a frame: parsing them blocks a thread for a moment. */
const FRAME_RECORDS = 512
/** Error codes of a full disk (write(2)). */
const FULL_DISK = new Set(['ENOSPC', 'EDQUOT'])

/** Error of a write to a full or failing disk. A later attempt may succeed. */
export class SpoolError extends MooringError {
  readonly again = true

  constructor(cause: Error & { readonly code: string }) {
    super('unavailable', `spool of the journal cannot be written: ${cause.code}`, { cause })
  }
}

export interface SpoolStoreOptions {
  readonly directory: string
  /** Maximum bytes on disk: see `keep`. */
  readonly bytes: number
  /** Called with the records that were dropped to make space. */
  readonly onDropped: (what: 'requests' | 'events', records: number) => void
  readonly files?: Files
}

/** Files of a spool: requests, which may be dropped, and events, which are dropped last. For a thread of its own. */
export interface SpoolStore {
  readonly events: SegmentLog
  readonly requests: SegmentLog
  /**
   * Keeps a shipment. After an error a repeated call adds only the missing records.
   *
   * Past the bound the oldest requests are dropped, and without requests the oldest files of events: a volume past its own limit
   * would lose everything. On a disk that is full before the bound only requests are dropped. Files with unsynced frames are
   * never dropped. An event on disk may be dropped before its sync is answered. It is acknowledged all the same, and counted as
   * dropped: a repeated write would drop other events.
   * @throws SpoolError
   */
  keep(shipment: Extract<SpoolRequest, { type: 'keep' }>): void
}

export function openSpoolStore({ directory, bytes, onDropped, files = diskFiles }: SpoolStoreOptions): SpoolStore {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const events = new SegmentLog({ directory, name: 'events', durable: true, files })
  const requests = new SegmentLog({ directory, name: 'requests', durable: false, files })
  /**
   * Events of a failed shipment that are written already. Its retry skips them: writing them twice would fill a full disk
   * further.
   */
  const added = new Set<string>()

  function makeRoom(more: number): void {
    while (events.bytes + requests.bytes + more > bytes && (dropRequests() || dropEvents())) continue
  }

  /** Drops requests. Returns whether bytes were freed; an empty file frees none. */
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

  function append(log: SegmentLog, kind: FrameKind, { payload, records }: BatchPart): void {
    const frame = encodeFrame({ kind, records, payload })
    makeRoom(frame.length)
    for (;;) {
      try {
        log.append(frame, records)
        return
      } catch (error) {
        // Dropping helps only on a full disk. Records on a failing disk may still be shipped.
        if (!isSystemError(error) || !FULL_DISK.has(error.code) || !dropRequests()) throw error
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
        for (const part of splitRequests(Buffer.concat(shipment.requests), FRAME_RECORDS)) append(requests, 'requests', part)
      } catch (error) {
        throw isSystemError(error) ? new SpoolError(error) : error
      }
      added.clear()
    },
  }
}
