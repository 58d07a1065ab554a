import type { Request } from 'express'
import { z } from 'zod'
import type { FieldError } from '../../shared/errors.ts'
import { strictDeep } from '../../shared/strict.ts'
import { fieldErrorsOf } from '../../shared/validate.ts'
import { invalidRequest } from './errors.ts'
import { parseIdempotencyKey } from './idempotency.ts'
import { parseIfMatch } from './if-match.ts'
import { hasControl, NO_CONTROLS_RULE, parseQuery } from './query.ts'
import type { AnyRoute, Principal, RouteRequest } from './route.ts'
import { sourceIpOf } from './request-context.ts'

const NOTHING = z.object({})

interface Arrived {
  readonly principal: Principal
  readonly requestId: string
  readonly arrivedAt: number
  readonly body: object
}

/**
 * Creates the parser of a route's requests. It checks path, query and body against their schemas, strict at every depth, and runs `checkBody`.
 * @throws (from the function) ApiError `invalid_request` with each invalid field once
 */
export function requestParser(route: AnyRoute): (req: Request, arrived: Arrived) => RouteRequest<never, never, never> {
  const params = strictDeep(route.params ?? NOTHING)
  const query = strictDeep(route.query ?? NOTHING)
  const body = strictDeep(route.body ?? NOTHING)

  return function parseRequest(req, { principal, requestId, arrivedAt, body: json }) {
    /** First error of each field. */
    const errors = new Map<string, FieldError>()
    const report = (found: readonly FieldError[]): void => {
      for (const error of found) if (!errors.has(error.field)) errors.set(error.field, error)
    }
    const withControl = Object.entries(req.params).filter(([, value]) => typeof value === 'string' && hasControl(value))
    report(withControl.map(([field]) => ({ field, message: NO_CONTROLS_RULE })))
    const rawQuery = parseQuery(queryStringOf(req.originalUrl))
    report(rawQuery.errors)

    const check = (schema: z.ZodObject, value: unknown): unknown => {
      const result = schema.safeParse(value)
      if (!result.success) report(fieldErrorsOf(result.error))
      return result.data
    }
    // The order of parsing is the order of the errors: path, query, body.
    const parsed = { params: check(params, req.params), query: check(query, rawQuery.values), body: check(body, json) }
    report(route.checkBody?.(json, new Set(errors.keys())) ?? [])
    if (errors.size > 0) throw invalidRequest([...errors.values()])
    return {
      ...(parsed as { params: never; query: never; body: never }),
      principal,
      requestId,
      arrivedAt,
      sourceIp: sourceIpOf(req.ip),
      idempotencyKey: route.idempotent ? parseIdempotencyKey(req.get('Idempotency-Key')) : undefined,
      ifMatch: parseIfMatch(req.get('If-Match')),
      namespaceHeader: req.get('Mooring-Namespace'),
    }
  }
}

function queryStringOf(url: string): string {
  const at = url.indexOf('?')
  return at < 0 ? '' : url.slice(at + 1)
}
