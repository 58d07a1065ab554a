import { mkdirSync } from 'node:fs'
import { MooringError } from '../../crds/errors.ts'
import { encodeFrame, type FrameKind } from './frame.ts'
import type { SpoolRequest } from './messages.ts'
import { SegmentLog } from './segment-log.ts'
import { splitRequests } from './split-requests.ts'

/** Requests of one frame: taking them apart holds a thread up for a moment. */
const FRAME_RECORDS = 512

/** There is no room on the disk for it now. */
export class SpoolError extends MooringError {
  readonly again = true

  constructor(options: ErrorOptions) {
    super('unavailable', 'the spool of the journal cannot be written now', options)
  }
}

export interface SpoolStoreOptions {
  readonly directory: string
  /** Bytes past which the oldest requests are dropped. */
  readonly bytes: number
  readonly onDropped: (records: number) => void
}

/** The files of a spool: requests, which may be dropped, beside what may not. For a thread of its own. */
export interface SpoolStore {
  readonly events: SegmentLog
  readonly requests: SegmentLog
  /** All of it, or as much that doing it again adds nothing new. @throws SpoolError */
  keep(shipment: Extract<SpoolRequest, { type: 'keep' }>): void
}

export function openSpoolStore({ directory, bytes, onDropped }: SpoolStoreOptions): SpoolStore {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const events = new SegmentLog({ directory, name: 'events', durable: true })
  const requests = new SegmentLog({ directory, name: 'requests', durable: false })

  function makeRoom(): void {
    while (events.bytes + requests.bytes > bytes && drop()) continue
  }

  function drop(): boolean {
    const lost = requests.drop()
    if (lost !== undefined && lost > 0) onDropped(lost)
    return lost !== undefined
  }

  function append(
    log: SegmentLog,
    kind: FrameKind,
    { payload, records }: { readonly payload: Buffer; readonly records: number },
  ) {
    const frame = encodeFrame({ kind, records, payload })
    for (;;) {
      try {
        log.append(frame, records)
        return
      } catch (error) {
        // A full disk: the oldest requests make room.
        if (!drop()) throw new SpoolError({ cause: error })
      }
    }
  }

  return {
    events,
    requests,
    keep(shipment) {
      for (const json of shipment.connections) append(events, 'connection', { payload: Buffer.from(json), records: 1 })
      for (const json of shipment.audit) append(events, 'audit', { payload: Buffer.from(json), records: 1 })
      for (const piece of splitRequests(shipment.requests, FRAME_RECORDS)) append(requests, 'requests', piece)
      makeRoom()
    },
  }
}
