/** One object as a row; `body` is its JSON. */
export interface Row {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly body: string
}

/** What is committed in one transaction. `revision` is the newest one in it. */
export interface Batch {
  readonly revision: number
  readonly puts: readonly Row[]
  readonly removes: readonly Omit<Row, 'body'>[]
}

export interface Contents {
  readonly revision: number
  readonly rows: readonly Row[]
}

/** Why the worker could not do what it was asked: `locked` (another process has the file open), `newer_layout` or `unavailable`. */
export interface Failure {
  readonly type: 'failed'
  readonly code: string
  readonly message: string
}

export type Request = { readonly type: 'commit'; readonly batch: Batch } | { readonly type: 'close' }
export type Reply =
  | { readonly type: 'opened'; readonly contents: Contents }
  | { readonly type: 'committed' }
  | { readonly type: 'closed' }
  | Failure
