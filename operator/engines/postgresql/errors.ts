import pg from 'pg'
import { MooringError } from '../../../shared/errors.ts'
import { EngineCode } from '../engine.ts'

/** SQLSTATEs that are acted upon (PostgreSQL documentation, appendix A). */
export const SqlState = {
  undefinedDatabase: '3D000',
  undefinedObject: '42704',
  duplicateDatabase: '42P04',
  duplicateObject: '42710',
  dependentObjects: '2BP01',
  objectInUse: '55006',
  /** Also: the database is not accepting connections. */
  notInPrerequisiteState: '55000',
  lockNotAvailable: '55P03',
  insufficientPrivilege: '42501',
  invalidAuthorization: '28000',
  invalidPassword: '28P01',
  diskFull: '53100',
  /** Among others, a full lock table. */
  outOfMemory: '53200',
  tooManyConnections: '53300',
  queryCanceled: '57014',
  /** Among others, two sessions that change one catalog row. */
  internalError: 'XX000',
} as const

/** The server's own code of an error, if the server said it. */
export function sqlStateOf(error: unknown): string | undefined {
  if (error instanceof pg.DatabaseError) return error.code
  return error instanceof MooringError ? sqlStateOf(error.cause) : undefined
}

const PASSING: readonly string[] = [SqlState.outOfMemory, SqlState.tooManyConnections, SqlState.queryCanceled]

/** The server is starting, stopping or full, or the connection broke: 08 connection, 57P01–57P03 shutdown, statement timeout. */
function isPassing(state: string): boolean {
  return state.startsWith('08') || state.startsWith('57P') || PASSING.includes(state)
}

/** Whatever went wrong, as an error of the engine port. The text of the server's message stays in `cause`. */
export function engineError(error: unknown): MooringError {
  if (error instanceof MooringError) return error
  const state = sqlStateOf(error)
  if (state !== undefined) {
    return isPassing(state)
      ? new MooringError(EngineCode.unavailable, `the PostgreSQL server is not available (SQLSTATE ${state})`, { cause: error })
      : new MooringError(EngineCode.failed, `the PostgreSQL server refused (SQLSTATE ${state})`, { cause: error })
  }
  if (error instanceof TypeError || error instanceof RangeError) {
    return new MooringError(EngineCode.failed, 'the PostgreSQL driver failed', { cause: error })
  }
  // The driver's other errors are all about its connection: refused, reset, not answered in time.
  return new MooringError(EngineCode.unavailable, 'the PostgreSQL server cannot be reached', { cause: error })
}

/** The same functions, but whatever they throw is an error of the engine port. */
export function withEngineErrors<Args extends unknown[], Result>(
  run: (...args: Args) => Promise<Result>,
): (...args: Args) => Promise<Result> {
  return async (...args) => {
    try {
      return await run(...args)
    } catch (error) {
      throw engineError(error)
    }
  }
}
