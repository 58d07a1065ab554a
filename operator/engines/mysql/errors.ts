import { MooringError } from '../../../shared/errors.ts'
import { EngineCode } from '../engine.ts'
import { errorConverter } from '../errors.ts'

/** Server errors that the engine handles (MySQL, "Server Error Message Reference"; MariaDB, "MariaDB Error Codes"). */
export const Errno = {
  cannotRemoveDirectory: 1010,
  tooManyConnections: 1040,
  databaseDenied: 1044,
  loginDenied: 1045,
  unknownDatabase: 1049,
  syntaxError: 1064,
  shutdown: 1053,
  unknownColumn: 1054,
  noSuchThread: 1094,
  /** Also a table of information_schema that this version does not have. */
  unknownTable: 1109,
  tableDenied: 1142,
  columnDenied: 1143,
  noSuchTable: 1146,
  unknownVariable: 1193,
  lockWaitTimeout: 1205,
  deadlock: 1213,
  tooManyUserConnections: 1203,
  limitReached: 1226,
  privilegeDenied: 1227,
  unknownRoutine: 1305,
  interrupted: 1317,
  invalidView: 1356,
  routineDenied: 1370,
  connectionKilled: 1927,
  statementTimeout: 1969,
  accountLockedByMysql: 3118,
  directoryExists: 3678,
  directoryWithoutDatabase: 3681,
  accountLockedByMariadb: 4151,
} as const

/** Login errors that the server reports only after it has accepted the password. */
export const RIGHT_PASSWORD: readonly unknown[] = [
  Errno.accountLockedByMysql,
  Errno.accountLockedByMariadb,
  Errno.tooManyUserConnections,
  Errno.limitReached,
]

/** Errors after which a retry may succeed. */
const TEMPORARY: readonly unknown[] = [
  Errno.tooManyConnections,
  Errno.shutdown,
  Errno.lockWaitTimeout,
  Errno.deadlock,
  Errno.tooManyUserConnections,
  Errno.interrupted,
  Errno.connectionKilled,
  Errno.statementTimeout,
]

/** Returns the server's number of an error; undefined for an error that is not from the server. */
export function errnoOf(error: unknown): number | undefined {
  if (error instanceof MooringError) return errnoOf(error.cause)
  if (!(error instanceof Error) || !('errno' in error) || !('sqlState' in error)) return undefined
  return typeof error.errno === 'number' && error.errno > 0 ? error.errno : undefined
}

/** Converts any error to an error of the engine port. Only `cause` has the text of the server's message. */
export function engineError(error: unknown): MooringError {
  if (error instanceof MooringError) return error
  const errno = errnoOf(error)
  if (errno !== undefined) {
    return TEMPORARY.includes(errno)
      ? new MooringError(EngineCode.unavailable, `the database server is not available (error ${errno})`, { cause: error })
      : new MooringError(EngineCode.failed, `the database server rejected a statement (error ${errno})`, { cause: error })
  }
  if (error instanceof TypeError || error instanceof RangeError) {
    return new MooringError(EngineCode.failed, 'the database driver failed', { cause: error })
  }
  // All other errors of the driver concern the connection: refused, reset, timeout.
  return new MooringError(EngineCode.unavailable, 'the database server cannot be reached', { cause: error })
}

/** Returns a function that behaves like the given one, but converts errors to errors of the engine port. */
export const withEngineErrors = errorConverter(engineError)
