import { MongoNetworkError, MongoServerError, MongoServerSelectionError, MongoTopologyClosedError } from 'mongodb'
import { MooringError } from '../../../shared/errors.ts'
import { EngineCode } from '../engine.ts'
import { errorConverter } from '../errors.ts'

/** Codes of the server that the engine handles (MongoDB, error_codes.yml). */
export const ServerCode = {
  userNotFound: 11,
  authenticationFailed: 18,
  alreadyInitialized: 23,
  /** The command passed its `maxTimeMS`. */
  timeLimitExceeded: 50,
  commandNotFound: 59,
  /** Also the code of a parameter that this version does not have. */
  invalidOptions: 72,
  notYetInitialized: 94,
  /** Also the code of `$currentOp` for an operation whose description is larger than a document may be. */
  objectTooLarge: 10334,
} as const

/** Codes of a server that is starting, stopping, electing a primary or short of a resource: a retry may succeed. */
const TEMPORARY: ReadonlySet<number | string | undefined> = new Set([
  ...[6, 7, 50, 89, 91, 112, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436],
  // Full disk.
  14031,
])

/** Returns the code of an error of the server; undefined for an error that is not from the server. */
export function serverCodeOf(error: unknown): number | undefined {
  if (error instanceof MongoServerError) return typeof error.code === 'number' ? error.code : undefined
  return error instanceof MooringError ? serverCodeOf(error.cause) : undefined
}

/** Converts any error to an error of the engine port. Only `cause` has the text of the server's message. */
export function engineError(error: unknown): MooringError {
  if (error instanceof MooringError) return error
  const code = serverCodeOf(error)
  if (code !== undefined) {
    return TEMPORARY.has(code)
      ? new MooringError(EngineCode.unavailable, `the MongoDB server is not available (code ${code})`, { cause: error })
      : new MooringError(EngineCode.failed, `the MongoDB server rejected a command (code ${code})`, { cause: error })
  }
  if (isConnectionError(error))
    return new MooringError(EngineCode.unavailable, 'the MongoDB server cannot be reached', { cause: error })
  return new MooringError(EngineCode.failed, 'the MongoDB driver failed', { cause: error })
}

function isConnectionError(error: unknown): boolean {
  const isDrivers = [MongoNetworkError, MongoServerSelectionError, MongoTopologyClosedError].some((kind) => error instanceof kind)
  return isDrivers || (error instanceof Error && 'syscall' in error)
}

/** Returns a function that behaves like the given one, but converts errors to errors of the engine port. */
export const withEngineErrors = errorConverter(engineError)
