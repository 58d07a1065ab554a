import type { RequestListener } from 'node:http'
import { errorBody } from './error-answer.ts'
import { ApiError } from './errors.ts'
import { requestIdOf } from './request-context.ts'

/** Answers 503 to everything, in the form of every other error: for a port that is open before there is an API to serve. */
export const answerNotYet: RequestListener = (req, res) => {
  const given = req.headers['x-request-id']
  const requestId = requestIdOf(typeof given === 'string' ? given : undefined)
  const error = new ApiError('unavailable', 'Mooring is starting; try again in a moment')
  res
    .writeHead(error.status, {
      'Content-Type': 'application/json; charset=utf-8',
      'Retry-After': '1',
      'X-Request-Id': requestId,
      'Cache-Control': 'no-store',
    })
    .end(JSON.stringify(errorBody(error, requestId)))
}
