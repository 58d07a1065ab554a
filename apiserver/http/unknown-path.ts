import { type AnyRoute, type Listener, LISTENERS } from './route.ts'

/** Paths without authentication, on both listeners. */
const OPEN_PATHS = ['/openapi.json', '/docs', '/healthz', '/readyz']
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
      return `this path is served by the ${other} API, on a port of its own`
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
