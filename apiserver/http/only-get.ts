import type { RequestHandler } from 'express'
import { ApiError } from './errors.ts'

/** Rejects every other method of a read-only path; for `.all()` after `.get()`. @throws ApiError `method_not_allowed` */
export const onlyGet: RequestHandler = ({ method }) => {
  throw new ApiError('method_not_allowed', `${method} is not allowed here; allowed: GET, HEAD`, {
    headers: { Allow: 'GET, HEAD' },
  })
}
