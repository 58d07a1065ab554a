import type { IncomingMessage } from 'node:http'
import type { Request } from 'express'
import { z } from 'zod'
import type { FieldError } from '../../shared/errors.ts'
import { strictDeep } from '../../shared/strict.ts'
import { fieldErrorsOf } from '../../shared/validate.ts'
import { invalidRequest, ApiError } from './errors.ts'
import { parseIdempotencyKey } from '../resources/creations.ts'
import { parseIfMatch } from '../resources/conditional-writes.ts'
import type { AnyRoute, FixedFields, Principal, RouteRequest } from './route.ts'
import { sourceIpOf } from './request-context.ts'
import { isFields } from '../../crds/formats/fields.ts'

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
    const beforeBody = { params: check(params, req.params), query: check(query, rawQuery.values) }
    // Before the schema of the body, which would call these fields unknown.
    report(fixedIn(json, route.fixed))
    const parsed = { ...beforeBody, body: check(body, json) }
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

function fixedIn(json: object, fixed: FixedFields = new Map()): readonly FieldError[] {
  return Object.keys(json).flatMap((field) => {
    const message = fixed.get(field)
    return message === undefined ? [] : [{ field, message }]
  })
}

function queryStringOf(url: string): string {
  const at = url.indexOf('?')
  return at < 0 ? '' : url.slice(at + 1)
}

interface ParsedQuery {
  /** Value of each parameter; the first one of a duplicate. */
  readonly values: Readonly<Record<string, string>>
  readonly errors: readonly FieldError[]
}

/** Parses a query string strictly: invalid percent-encoding, a control character or a duplicate parameter is an error. */
export function parseQuery(query: string): ParsedQuery {
  // The null prototype makes `__proto__` an ordinary parameter.
  const values = Object.create(null) as Record<string, string>
  const errors: FieldError[] = []
  for (const pair of query.split('&').filter((text) => text !== '')) {
    const [name, value] = partsOf(pair)
    const wrong = errorOf(name, value, values)
    if (wrong) errors.push(wrong)
    else if (name !== undefined && value !== undefined) values[name] = value
  }
  return { values, errors }
}

/** Decodes name and value; undefined marks a part that is not valid. */
function partsOf(pair: string): [name: string | undefined, value: string | undefined] {
  const at = pair.indexOf('=')
  return at < 0 ? [decodeText(pair), ''] : [decodeText(pair.slice(0, at)), decodeText(pair.slice(at + 1))]
}

function errorOf(name: string | undefined, value: string | undefined, seen: object): FieldError | undefined {
  if (name === undefined || value === undefined) return { field: name ?? 'query', message: 'is not valid percent-encoded UTF-8' }
  if (hasControl(name)) return { field: 'query', message: NO_CONTROLS_RULE }
  if (hasControl(value)) return { field: name, message: NO_CONTROLS_RULE }
  return name in seen ? { field: name, message: 'must be given once' } : undefined
}

function decodeText(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}

/** Text without control characters, in escapes that every regular expression engine supports: the pattern is part of the OpenAPI document. */
export const NO_CONTROLS = /^[^\x00-\x1f\x7f-\x9f]*$/
export const NO_CONTROLS_RULE = 'must not contain control characters'

/** Whether `text` contains a control character (NUL included), which no name or value of this API may. */
export function hasControl(text: string): boolean {
  return !NO_CONTROLS.test(text)
}

const BODY_LIMIT = 65_536

/** Content types of JSON. RFC 8259 requires UTF-8, so a parameter other than that charset is rejected. */
const JSON_TYPE = /^application\/json\s*(;\s*charset="?utf-8"?\s*)?$/i
const MERGE_PATCH_TYPE = /^application\/merge-patch\+json\s*(;\s*charset="?utf-8"?\s*)?$/i

/** Part of a route that its body depends on. */
type BodyRules = Pick<AnyRoute, 'method' | 'body'>

/**
 * Reads the JSON object in a request's body. A route without a body schema accepts an absent body with any Content-Type and gets `{}`.
 * @throws ApiError `unsupported_media_type`, `too_large`, `invalid_json`; `invalid_request` when the value is not an object
 */
export async function readJsonBody(req: IncomingMessage, route: BodyRules): Promise<object> {
  const bytes = await readBytes(req)
  if (bytes.length === 0 && !route.body) return {}
  if (bytes.length === 0) throw new ApiError('invalid_json', 'the body is missing; send a JSON object')
  checkType(req, route)
  return parseObject(decode(bytes))
}

function checkType({ headers }: IncomingMessage, { method }: BodyRules): void {
  const type = headers['content-type'] ?? ''
  if ((headers['content-encoding'] ?? 'identity') !== 'identity') {
    throw new ApiError('unsupported_media_type', 'send the body without a Content-Encoding')
  }
  if (JSON_TYPE.test(type) || (method === 'patch' && MERGE_PATCH_TYPE.test(type))) return
  const allowed = method === 'patch' ? 'application/merge-patch+json or application/json' : 'application/json'
  throw new ApiError('unsupported_media_type', `the Content-Type of the body must be ${allowed}`)
}

async function readBytes(req: IncomingMessage): Promise<Buffer> {
  if (Number(req.headers['content-length'] ?? 0) > BODY_LIMIT) throw tooLarge()
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of chunksOf(req)) {
    size += chunk.length
    if (size > BODY_LIMIT) throw tooLarge()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** Yields the body of a request. @throws ApiError when the caller disconnects: a client error that must not be logged as a failure */
async function* chunksOf(req: IncomingMessage): AsyncGenerator<Buffer> {
  try {
    // Leaving the loop early must keep the socket open for the answer.
    yield* req.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>
  } catch (cause) {
    throw new ApiError('invalid_json', 'the body is incomplete', { cause })
  }
}

const tooLarge = () => new ApiError('too_large', `the body is larger than ${BODY_LIMIT / 1024} KiB (${BODY_LIMIT} bytes)`)

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new ApiError('invalid_json', 'the body is not UTF-8', { cause })
  }
}

function parseObject(text: string): object {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // The parser's own message quotes the body, which may hold a secret.
    throw new ApiError('invalid_json', 'the body is not valid JSON; send one JSON object in UTF-8')
  }
  if (isFields(value)) return value
  const message = 'must be a JSON object'
  throw new ApiError('invalid_request', `the body ${message}`, { details: [{ field: 'body', message }] })
}
