/** The JSON that a class of the client library stands for, with its fields' names and types. */
export type Plain<T> = T extends Date
  ? string
  : T extends (infer E)[]
    ? Plain<E>[]
    : T extends object
      ? { [P in keyof T]: Plain<T[P]> }
      : T
