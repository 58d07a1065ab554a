/** Object as a row of the database; `body` is its JSON. */
export interface Row {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly body: string
}

/** Contents of one transaction. `revision` is its newest revision. */
export interface Batch {
  readonly revision: number
  readonly puts: readonly Row[]
  readonly removes: readonly Omit<Row, 'body'>[]
}

/** All objects in the file, and the revision of the last transaction. */
export interface Contents {
  readonly revision: number
  readonly rows: readonly Row[]
}

/** Error of a request to the worker. `code`: `locked` (another process has the file open), `newer_layout` or `unavailable`. */
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
