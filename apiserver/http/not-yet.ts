import type { RequestListener } from 'node:http'
import type { RequestHandler } from 'express'
import { errorBody } from './error-answer.ts'
import { ApiError } from './errors.ts'
import { requestIdOf } from './request-context.ts'

const starting = () =>
  new ApiError('unavailable', 'Mooring is starting; try again in a moment', { headers: { 'Retry-After': '1' } })

/** Creates the middleware that answers 503 while `isSynced` is false: incomplete caches would make existing resources look deleted. */
export function rejectUntilSynced(isSynced: () => boolean): RequestHandler {
  return function rejectUntilSynced(_req, _res, next) {
    if (!isSynced()) throw starting()
    next()
  }
}

/** Answers every request with 503 in the usual JSON, for a port that is open before the API is ready. */
export const answerStarting: RequestListener = (req, res) => {
  const given = req.headers['x-request-id']
  const requestId = requestIdOf(typeof given === 'string' ? given : undefined)
  const error = starting()
  res
    .writeHead(error.status, {
      'Content-Type': 'application/json; charset=utf-8',
      ...error.headers,
      'X-Request-Id': requestId,
      'Cache-Control': 'no-store',
    })
    .end(JSON.stringify(errorBody(error, requestId)))
}
