/** `again`: the same may work later (no room, an error of the disk); else it never will. */
export interface Failure {
  readonly type: 'failed'
  readonly code: string
  readonly message: string
  readonly again: boolean
}

/** Question and answer as they cross between threads; the first answer of a thread, to question 0, is whether it could begin. */
export interface Envelope<T> {
  readonly number: number
  readonly content: T
}
