import type { RequestHandler } from 'express'
import { ApiError } from './errors.ts'

/** For `.all()` after the `.get()` of a path that is only read. @throws ApiError `method_not_allowed` */
export const onlyGet: RequestHandler = ({ method }) => {
  throw new ApiError('method_not_allowed', `${method} is not allowed here; allowed: GET, HEAD`, {
    headers: { Allow: 'GET, HEAD' },
  })
}
