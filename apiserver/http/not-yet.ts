import type { RequestListener } from 'node:http'
import type { RequestHandler } from 'express'
import { errorBody } from './error-answer.ts'
import { ApiError } from './errors.ts'
import { requestIdOf } from './request-context.ts'

const notYet = () =>
  new ApiError('unavailable', 'Mooring is starting; try again in a moment', { headers: { 'Retry-After': '1' } })

/** Lets nothing past while `isSynced` is false: what is there would be said not to be. */
export function refuseUntil(isSynced: () => boolean): RequestHandler {
  return function refuseUntilSynced(_req, _res, next) {
    if (!isSynced()) throw notYet()
    next()
  }
}

/** Answers 503 to everything, in the form of every other error: for a port that is open before there is an API to serve. */
export const answerNotYet: RequestListener = (req, res) => {
  const given = req.headers['x-request-id']
  const requestId = requestIdOf(typeof given === 'string' ? given : undefined)
  const error = notYet()
  res
    .writeHead(error.status, {
      'Content-Type': 'application/json; charset=utf-8',
      ...error.headers,
      'X-Request-Id': requestId,
      'Cache-Control': 'no-store',
    })
    .end(JSON.stringify(errorBody(error, requestId)))
}
