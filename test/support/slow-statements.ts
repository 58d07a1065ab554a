/** Counter of the statements of a test that a server may count as slow: on a busy machine, any statement can be. */
export interface SlowStatements {
  /** Runs a statement. */
  run<T>(statement: () => Promise<T>): Promise<T>
  /** Returns the maximum number of statements of a second or more so far. */
  atMost(): number
}

/** Returns the number of slow statements that a server has counted; 0 for an engine that does not count them. */
export const totalOf = (slow: object): number => ({ total: 0, ...slow }).total

export function slowStatements(): SlowStatements {
  let seconds = 0
  return {
    async run(statement) {
      const begin = performance.now()
      const result = await statement()
      seconds += Math.floor((performance.now() - begin) / 1_000)
      return result
    },
    atMost: () => seconds,
  }
}
