import type { RequestHandler } from 'express'
import type { Logger } from 'pino'
import type { ApiMetrics } from '../metrics.ts'
import { contextOf } from './request-context.ts'
import type { Listener } from './route.ts'

export interface AccessLogDeps {
  readonly listener: Listener
  readonly metrics: ApiMetrics
  readonly log: Logger
}

/**
 * Creates the middleware that writes one log line and one metric sample for each answer. The line has the route template, never the path, headers,
 * query or body, which may contain secrets or names of other tenants.
 */
export function accessLog({ listener, metrics, log }: AccessLogDeps): RequestHandler {
  return function accessLog(req, res, next) {
    res.once('close', () => {
      const { requestId, startedAt, route = 'unmatched', principal } = contextOf(req)
      const ms = performance.now() - startedAt
      const { method } = req
      const status = res.statusCode
      metrics.answered({ listener, method, route, status, seconds: ms / 1e3 })
      const aborted = res.writableFinished ? undefined : true
      log.info(
        { listener, method, route, status, ms: Math.round(ms * 10) / 10, user: principal?.user, requestId, aborted },
        'request',
      )
    })
    next()
  }
}
