/** Error of a thread. `again` says that a later attempt may succeed, as after a full disk or a disk error. */
export interface Failure {
  readonly type: 'failed'
  readonly code: string
  readonly message: string
  readonly again: boolean
}

/** Question or answer, as posted between threads. The first answer of a thread, number 0, reports whether it could start. */
export interface Envelope<T> {
  readonly number: number
  readonly content: T
}
