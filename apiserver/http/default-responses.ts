import type { RequestListener } from 'node:http'
import type { RequestHandler } from 'express'
import { type AnyRoute, type Listener, LISTENERS } from './route.ts'
import { ApiError, errorBody } from './errors.ts'
import { requestIdOf } from './request-context.ts'

/** Paths without authentication, on both listeners. */
const OPEN_PATHS = ['/openapi.json', '/docs', '/healthz', '/readyz']
/** Usual address of each API, for a client that called the other one. An administrator may choose another port. */
const PORTS: Readonly<Record<Listener, string>> = {
  shared: '8443 of an embedded Mooring by default (MOORING_URL), 443 in a cluster',
  dedicated: '8444 by default (MOORING_DEDICATED_URL of an embedded Mooring)',
}
/** Maximum distance, in characters, of a suggested path. */
const MAX_DISTANCE = 3
/** Distance of a missing or additional segment, in characters. */
const SEGMENT_DISTANCE = 3
/** Bounds of the comparison; no route has more segments or longer literals. */
const MAX_SEGMENTS = 10
const MAX_LENGTH = 64

/**
 * Creates the function that explains an unknown path and suggests the nearest template. It depends on the templates only, so it reveals nothing about
 * existing resources.
 */
export function createUnknownPath(routes: readonly AnyRoute[], listener: Listener): (path: string) => string {
  const own = [...OPEN_PATHS, ...new Set(routes.filter(({ on }) => on.includes(listener)).map(({ path }) => path))]
  const other = LISTENERS.find((each) => each !== listener) ?? listener
  const elsewhere = routes.filter(({ on }) => !on.includes(listener)).map(({ path }) => path)
  const ownTops = new Set(own.map(topOf))
  const otherTops = new Set(elsewhere.map(topOf).filter((top) => !ownTops.has(top)))

  return function unknownPath(path) {
    if (otherTops.has(topOf(path)) || elsewhere.some((template) => distance(template, path) === 0)) {
      return `this path is served by the ${other} API, on another port: ${PORTS[other]}`
    }
    const nearest = [...own, ...elsewhere]
      .map((template) => ({ template, away: distance(template, path) }))
      .toSorted((a, b) => a.away - b.away)[0]
    if (!nearest || nearest.away > MAX_DISTANCE) return 'unknown path; GET /openapi.json lists all paths'
    const where = own.includes(nearest.template) ? '' : ` of the ${other} API`
    return `unknown path; the nearest one is ${nearest.template}${where}`
  }
}

/** `/v1/instances/{id}` → `/v1/instances` */
const topOf = (path: string): string => path.split('/').slice(0, 3).join('/')

const segmentsOf = (path: string): readonly string[] => path.split('/').slice(1, MAX_SEGMENTS + 2)

/** Distance of a path from a template in characters; 0 means a match. A parameter matches any non-empty text. */
function distance(template: string, path: string): number {
  const [wanted, given] = [segmentsOf(template), segmentsOf(path)]
  const length = Math.max(wanted.length, given.length)
  let sum = 0
  for (let index = 0; index < length; index++) sum += segmentDistance(wanted[index], given[index])
  return sum
}

function segmentDistance(wanted: string | undefined, given: string | undefined): number {
  if (wanted === undefined) return given === '' ? 1 : SEGMENT_DISTANCE
  if (given === undefined) return SEGMENT_DISTANCE
  if (wanted.startsWith('{')) return given === '' ? SEGMENT_DISTANCE : 0
  if (wanted === given) return 0
  return Math.max(1, editDistance(wanted, given.slice(0, MAX_LENGTH).toLowerCase()))
}

/** Levenshtein distance. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 0; i < a.length; i++) {
    const next = [i + 1]
    for (let j = 0; j < b.length; j++) {
      next.push(Math.min((next[j] ?? 0) + 1, (row[j + 1] ?? 0) + 1, (row[j] ?? 0) + Number(a[i] !== b[j])))
    }
    row = next
  }
  return row.at(-1) ?? 0
}

/** Rejects every other method of a read-only path; for `.all()` after `.get()`. @throws ApiError `method_not_allowed` */
export const onlyGet: RequestHandler = ({ method }) => {
  throw new ApiError('method_not_allowed', `${method} is not allowed here; allowed: GET, HEAD`, {
    headers: { Allow: 'GET, HEAD' },
  })
}

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
export const respondStarting: RequestListener = (req, res) => {
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
