/** JSON form of a class of the client library, with the same field names and types. */
export type Plain<T> = T extends Date
  ? string
  : T extends (infer E)[]
    ? Plain<E>[]
    : T extends object
      ? { [P in keyof T]: Plain<T[P]> }
      : T
