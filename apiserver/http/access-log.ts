import type { RequestHandler } from 'express'
import type { Logger } from 'pino'
import { Counter, Histogram, Registry } from 'prom-client'
import { watchEventLoop } from '../../process/status-listener.ts'
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

interface AnsweredRequest {
  readonly listener: Listener
  readonly method: string
  /** Route template or `unmatched`; paths would be an unbounded label. */
  readonly route: string
  readonly status: number
  readonly seconds: number
}

export interface ApiMetrics {
  readonly registry: Registry
  answered(request: AnsweredRequest): void
  authFailed(reason: string): void
  close(): void
}

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
const DURATION_BUCKETS = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** Creates the metrics of the API in a registry that other components may share. */
export function createMetrics(registry: Registry = new Registry()): ApiMetrics {
  const registers = [registry]
  const requests = new Counter({
    name: 'mooring_http_requests_total',
    help: 'Requests that the API answered.',
    labelNames: ['listener', 'method', 'route', 'status'],
    registers,
  })
  const durations = new Histogram({
    name: 'mooring_http_request_duration_seconds',
    help: 'Time from the arrival of a request at the API to the end of its answer.',
    labelNames: ['listener', 'method', 'route', 'status'],
    buckets: DURATION_BUCKETS,
    registers,
  })
  const authFailures = new Counter({
    name: 'mooring_auth_failures_total',
    help: 'Requests whose caller could not be authenticated.',
    labelNames: ['reason'],
    registers,
  })
  const eventLoop = watchEventLoop(registry)

  function answered({ seconds, ...request }: AnsweredRequest): void {
    const labels = { ...request, method: METHODS.has(request.method) ? request.method : 'OTHER' }
    requests.inc(labels)
    durations.observe(labels, seconds)
  }

  return {
    registry,
    answered,
    authFailed: (reason) => authFailures.inc({ reason }),
    close: () => eventLoop[Symbol.dispose](),
  }
}
