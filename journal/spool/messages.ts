/** What the thread of the spool is told at its start. */
export interface SpoolStart {
  /** Of the files. */
  readonly directory: string
  /** With the files `uri` and `ca.crt` of the journal's login. */
  readonly login: string
  /** Bytes on disk at the most: for more, the oldest requests go, and where there are none, the oldest connections and audit entries. */
  readonly bytes: number
}

/** What the thread is asked. Each gets exactly one reply. */
export type SpoolRequest =
  | {
      readonly type: 'keep'
      /** Batches as request-text.ts has them, UTF-8. */
      readonly requests: readonly Uint8Array[]
      /** Each as JSON. */
      readonly connections: readonly string[]
      readonly audit: readonly string[]
    }
  /** Answered when connections and audit entries that were kept before are on the disk. */
  | { readonly type: 'sync' }
  | { readonly type: 'state' }
  /** Which journal it ships to. */
  | { readonly type: 'journal' }
  /** Answered when what was kept before has been shipped, or given up after `withinMs`. */
  | { readonly type: 'drain'; readonly withinMs: number }
  | { readonly type: 'close' }

export interface SpoolState {
  /** Records on disk that were not shipped yet. */
  readonly waiting: number
  /** Since when the journal has been away, in milliseconds; 0 while it is there. */
  readonly awayMs: number
  /** Why it is away; empty while it is there. */
  readonly failure: string
  /** Why what is on the disk cannot be read or removed; empty while it can. */
  readonly disk: string
  /** Records that were shipped, requests and events that were dropped for want of room, and what the journal refused, since the thread began. */
  readonly shipped: number
  readonly dropped: number
  readonly droppedEvents: number
  readonly refused: number
}

export type SpoolReply =
  | { readonly type: 'done' }
  /** Undefined: nobody knows yet. */
  | { readonly type: 'journal'; readonly identity: string | undefined }
  | ({ readonly type: 'state' } & SpoolState)
