import type { z } from 'zod'
import { STATUS_OF } from '../http/errors.ts'
import type { JsonObject, Schemas } from './openapi-schemas.ts'
import type { AnyRoute } from '../http/route.ts'

const ref = (section: 'headers' | 'parameters' | 'responses', name: string) => ({ $ref: `#/components/${section}/${name}` })

/** Error answers of the HTTP server, before a route is known. */
export const HTTP_REJECTIONS: Readonly<Record<number, string>> = {
  431: 'The request line and headers are larger than 16 KiB: `invalid_request`',
}

/** Error statuses of the API, in ascending order. */
export const ERROR_STATUSES: readonly number[] = [
  ...new Set([...Object.values(STATUS_OF), ...Object.keys(HTTP_REJECTIONS).map(Number)]),
].sort((a, b) => a - b)

/** Returns the name of the component under `responses`, such as `Error404`. */
export const errorName = (status: number): string => `Error${status}`

/** Error statuses that any authenticated request can get. */
const ALWAYS = [400, 401, 403, 429, 431, 500, 503]

/** Returns the OpenAPI operation of a route. */
export function operationOf(route: AnyRoute, schemas: Schemas): JsonObject {
  return {
    operationId: route.id,
    summary: route.summary,
    ...(route.description !== undefined && { description: route.description }),
    tags: [tagOf(route.path)],
    parameters: parametersOf(route, schemas),
    ...(route.body && { requestBody: requestBodyOf(route.method, route.body, schemas) }),
    responses: responsesOf(route, schemas),
    'x-mooring-listeners': [...route.on],
  }
}

function parametersOf(route: AnyRoute, schemas: Schemas): readonly JsonObject[] {
  return [
    ...fieldsOf(route.params, 'path', schemas),
    ...fieldsOf(route.query, 'query', schemas),
    ...(route.home ? [ref('parameters', 'MooringNamespace')] : []),
    ...(route.idempotent ? [ref('parameters', 'IdempotencyKey')] : []),
    ...(route.conditional ? [ref('parameters', 'IfMatch')] : []),
    ref('parameters', 'RequestId'),
  ]
}

function fieldsOf(schema: z.ZodObject | undefined, location: 'path' | 'query', schemas: Schemas): JsonObject[] {
  if (!schema) return []
  const { properties = {}, required = [] } = schemas.of(schema, 'input')
  return Object.entries(properties).map(([name, { description, examples, ...rest }]) => ({
    name,
    in: location,
    required: location === 'path' || required.includes(name),
    ...(description !== undefined && { description }),
    ...(Array.isArray(examples) && { example: examples[0] as unknown }),
    schema: rest,
  }))
}

function requestBodyOf(method: AnyRoute['method'], body: z.ZodObject, schemas: Schemas): JsonObject {
  const examples = body.meta()?.examples
  const content = { schema: schemas.of(body, 'input'), ...(Array.isArray(examples) && { example: examples[0] as unknown }) }
  const mergePatch = method === 'patch' ? { 'application/merge-patch+json': content } : {}
  return { required: true, content: { 'application/json': content, ...mergePatch } }
}

function responsesOf(route: AnyRoute, schemas: Schemas): JsonObject {
  const streams = route.streams === true
  const replies = Object.entries(route.replies).map(
    ([status, schema]) => [status, replyOf(status, { schema: schemas.of(schema, 'output'), streams })] as const,
  )
  const errors = errorStatusesOf(route).map((status) => [status, ref('responses', errorName(status))] as const)
  return Object.fromEntries([...replies, ...errors])
}

function replyOf(
  status: string,
  { schema: data, streams }: { readonly schema: JsonObject; readonly streams: boolean },
): JsonObject {
  const schema = { type: 'object', properties: { msg: { type: 'string', const: 'OK' }, data }, required: ['msg', 'data'] }
  const events = {
    'text/event-stream': { schema: { type: 'string', description: 'Server-sent events until either side ends the stream.' } },
  }
  return {
    description: { '200': 'Done.', '201': 'Created.', '202': 'Accepted and still in progress.' }[status] ?? 'Done.',
    headers: { 'X-Request-Id': ref('headers', 'RequestId'), ETag: ref('headers', 'ETag') },
    content: { 'application/json': { schema }, ...(streams && events) },
  }
}

function errorStatusesOf({ method, params, home, query, body }: AnyRoute): number[] {
  const writes = method !== 'get'
  const named = params !== undefined || home === true
  const may = new Set([
    ...ALWAYS,
    ...(named ? [404, 409] : []),
    ...(writes ? [409, 413, 415] : []),
    ...(body || (writes && query) ? [422] : []),
  ])
  return ERROR_STATUSES.filter((status) => may.has(status))
}

interface Tag {
  readonly name: string
  readonly description: string
  /** Paths of the tag's operations; the first matching tag is used. */
  readonly paths: RegExp
}

/** Groups of operations at `/docs`, in display order. */
const TAGS: readonly Tag[] = [
  {
    name: 'Databases',
    description:
      'Databases on shared servers, for prototypes and pipelines: one request creates a database and answers with its connection details. ' +
      '`PUT /v1/instances/by-identifier/{identifier}` returns the same database to every run of a pipeline.',
    paths: /^\/v1\/instances/,
  },
  {
    name: 'Dedicated databases',
    description:
      'Databases with their own servers, for long lives: a plan sets the size, add-ons restrict who may connect. ' +
      '`GET /v1/databases/create/metadata` has the engines, plans and prices.',
    paths: /^\/v1\/(databases|engines)/,
  },
  { name: 'Regions', description: 'Locations of databases and tunnels, with the engines of each.', paths: /^\/v1\/regions/ },
  {
    name: 'Tunnel logs',
    description: 'Requests through a tunnel, statistics, and the connections of its SSH clients.',
    paths: /\/tunnels\/\{tunnel\}\/(requests|connections|stats)/,
  },
  {
    name: 'Tunnels',
    description:
      'Permanent public URLs for a port of your machine, served over SSH, with their settings, passwords and certificates.',
    paths: /\/tunnels/,
  },
  {
    name: 'Audit log',
    description: 'Creations, changes, deletions and reads of credentials, with their actors. Entries outlive their resources.',
    paths: /\/audit$/,
  },
  { name: 'Members', description: 'Users with a role in a namespace: viewer, editor or admin.', paths: /\/members/ },
  { name: 'API tokens', description: 'Tokens for programs, each bound to one namespace and one role.', paths: /\/api-tokens/ },
  {
    name: 'Organizations',
    description: 'Organizations and their namespaces, which contain all other resources.',
    paths: /^\/v1\/organizations/,
  },
  { name: 'You', description: 'User name, groups and roles of the caller.', paths: /^\/v1\/me$/ },
]

/** Returns the tag of a path template; without a matching tag, the first segment after the version. */
export function tagOf(path: string): string {
  return TAGS.find(({ paths }) => paths.test(path))?.name ?? path.split('/')[2] ?? path
}

/** Returns the tags of a document with these paths. */
export function tagsOf(paths: readonly string[]): readonly JsonObject[] {
  const used = new Set(paths.map(tagOf))
  const known = TAGS.filter(({ name }) => used.has(name)).map(({ name, description }) => ({ name, description }))
  return [
    ...known,
    ...[...used].filter((name) => !TAGS.some((tag) => tag.name === name)).map((name) => ({ name, description: name })),
  ]
}
