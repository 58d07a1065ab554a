import pg from 'pg'
import { MooringError } from '../../../shared/errors.ts'
import { EngineCode } from '../engine.ts'
import { errorConverter } from '../errors.ts'

/** SQLSTATEs that the engine handles (PostgreSQL documentation, appendix A). */
export const SqlState = {
  undefinedDatabase: '3D000',
  undefinedObject: '42704',
  uniqueViolation: '23505',
  duplicateObject: '42710',
  dependentObjects: '2BP01',
  objectInUse: '55006',
  /** Includes a database that is not accepting connections. */
  notInPrerequisiteState: '55000',
  lockNotAvailable: '55P03',
  insufficientPrivilege: '42501',
  invalidAuthorization: '28000',
  invalidPassword: '28P01',
  diskFull: '53100',
  /** Includes a full lock table. */
  outOfMemory: '53200',
  tooManyConnections: '53300',
  queryCanceled: '57014',
  /** Includes concurrent changes of one catalog row. */
  internalError: 'XX000',
  /** Includes a library of a login that the server lacks. */
  undefinedFile: '58P01',
} as const

/** Returns the SQLSTATE of an error; undefined for an error that is not from the server. */
export function sqlStateOf(error: unknown): string | undefined {
  if (error instanceof pg.DatabaseError) return error.code
  return error instanceof MooringError ? sqlStateOf(error.cause) : undefined
}

const TEMPORARY: readonly string[] = [SqlState.outOfMemory, SqlState.tooManyConnections, SqlState.queryCanceled]

/** Whether a retry may succeed: 08 broken connection, 57P01–57P03 server starting or stopping, server full, statement timeout. */
function isTemporary(state: string): boolean {
  return state.startsWith('08') || state.startsWith('57P') || TEMPORARY.includes(state)
}

/** Converts any error to an error of the engine port. Only `cause` has the text of the server's message. */
export function engineError(error: unknown): MooringError {
  if (error instanceof MooringError) return error
  const state = sqlStateOf(error)
  if (state !== undefined) {
    return isTemporary(state)
      ? new MooringError(EngineCode.unavailable, `the PostgreSQL server is not available (SQLSTATE ${state})`, { cause: error })
      : new MooringError(EngineCode.failed, `the PostgreSQL server refused (SQLSTATE ${state})`, { cause: error })
  }
  if (error instanceof TypeError || error instanceof RangeError) {
    return new MooringError(EngineCode.failed, 'the PostgreSQL driver failed', { cause: error })
  }
  // All other errors of the driver concern the connection: refused, reset, timeout.
  return new MooringError(EngineCode.unavailable, 'the PostgreSQL server cannot be reached', { cause: error })
}

/** Returns a function that behaves like the given one, but converts errors to errors of the engine port. */
export const withEngineErrors = errorConverter(engineError)
