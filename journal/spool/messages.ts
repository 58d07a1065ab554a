/** Configuration of the spool's thread. */
export interface SpoolStart {
  /** Directory of the files. */
  readonly directory: string
  /** Directory with the files `uri` and `ca.crt` of the journal's login. */
  readonly login: string
  /**
   * Maximum bytes on disk. Past it the oldest requests are dropped, and without requests the oldest connections and audit
   * entries.
   */
  readonly bytes: number
}

/** Question to the spool's thread. Each gets exactly one reply. */
export type SpoolRequest =
  | {
      readonly type: 'keep'
      /** Batches in the format of request-text.ts, UTF-8. */
      readonly requests: readonly Uint8Array[]
      /** Connections and audit entries, each as JSON. */
      readonly connections: readonly string[]
      readonly audit: readonly string[]
    }
  /** Answered when all connections and audit entries kept before are on disk. */
  | { readonly type: 'sync' }
  | { readonly type: 'state' }
  /** Asks for the identity of the journal. */
  | { readonly type: 'journal' }
  /** Answered when all records kept before are shipped, or after `withinMs` milliseconds. */
  | { readonly type: 'drain'; readonly withinMs: number }
  | { readonly type: 'close' }

export interface SpoolState {
  /** Number of records on disk that are not shipped yet. */
  readonly waiting: number
  /** Time since the journal became unavailable, in milliseconds; 0 while it is available. */
  readonly awayMs: number
  /** Reason why the journal is unavailable; empty while it is available. */
  readonly failure: string
  /** Reason why files cannot be read or removed; empty while they can. */
  readonly disk: string
  /**
   * Numbers of records since the thread started: shipped, requests and events dropped for lack of space, and rejected by the
   * journal.
   */
  readonly shipped: number
  readonly dropped: number
  readonly droppedEvents: number
  readonly refused: number
}

export type SpoolReply =
  | { readonly type: 'done' }
  /** `identity` is undefined while the journal has no schema. */
  | { readonly type: 'journal'; readonly identity: string | undefined }
  | ({ readonly type: 'state' } & SpoolState)
