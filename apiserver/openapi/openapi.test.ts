import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { CreateInstanceBody } from '../instances/instance-body.ts'
import { InstanceData, InstanceParams } from '../instances/instance-deps.ts'
import { region } from '../../test/builders/resources.ts'
import { openApiDocument } from './openapi.ts'
import { EXAMPLE, withRegion, type JsonObject } from './openapi-schemas.ts'
import { tagOf } from './openapi-operation.ts'
import { PageQuery } from '../http/paging.ts'
import { route } from '../http/route.ts'
import { NAMESPACE_PATH } from '../tenancy/tenancy-deps.ts'

const never = () => Promise.reject(new Error('not called'))
const create = route({
  method: 'post',
  path: '/v1/instances',
  on: ['shared'],
  id: 'createInstance',
  summary: 'Create.',
  body: CreateInstanceBody,
  idempotent: true,
  home: true,
  replies: { 201: InstanceData },
  handle: never,
})
const get = route({
  method: 'get',
  path: '/v1/instances/{id}',
  on: ['shared'],
  id: 'getInstance',
  summary: 'Get.',
  params: InstanceParams,
  query: z.object({ ...PageQuery, inner: z.string().optional() }),
  replies: { 200: InstanceData },
  handle: never,
})
const document = openApiDocument([create, get])

/** Every `$ref` anywhere in `value`. */
function refsOf(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, field]) => (key === '$ref' ? [field as string] : refsOf(field)))
}

const pick = (path: string) =>
  path
    .split('/')
    .slice(1)
    .reduce<unknown>((at, key) => (at as Record<string, unknown>)[unescape(key)], document)
const unescape = (key: string) => key.replaceAll('~1', '/').replaceAll('~0', '~')

test('every reference has a target', () => {
  const refs = new Set(refsOf(document))
  expect(refs.size).toBeGreaterThan(5)
  for (const ref of refs) expect(pick(ref), ref).toBeDefined()
})

test('an operation has its path, query and header parameters', () => {
  expect(pick('#/paths/~1v1~1instances~1{id}/get/parameters')).toMatchObject([
    { name: 'id', in: 'path', required: true },
    { name: 'limit', in: 'query', required: false, schema: { type: 'integer', minimum: 1, maximum: 200 } },
    { name: 'cursor', in: 'query', required: false },
    { name: 'inner', in: 'query', required: false },
    { $ref: '#/components/parameters/RequestId' },
  ])
  expect(refsOf(pick('#/paths/~1v1~1instances/post/parameters'))).toEqual([
    '#/components/parameters/MooringNamespace',
    '#/components/parameters/IdempotencyKey',
    '#/components/parameters/RequestId',
  ])
})

test('an answer is wrapped in the envelope', () => {
  expect(pick('#/paths/~1v1~1instances/post/responses/201/content/application~1json/schema')).toMatchObject({
    properties: { msg: { const: 'OK' }, data: { properties: { instance: { $ref: '#/components/schemas/Instance' } } } },
    required: ['msg', 'data'],
  })
})

test('a request rejects unknown fields, an answer allows them', () => {
  expect(pick('#/components/schemas/CreateInstance')).toHaveProperty('additionalProperties', false)
  expect(pick('#/components/schemas/Instance')).not.toHaveProperty('additionalProperties')
})

test('each error status lists its codes', () => {
  expect(pick('#/components/responses/Error422/description')).toContain('`unknown_region`')
  expect(refsOf(pick('#/paths/~1v1~1instances/post/responses'))).toContain('#/components/responses/Error422')
})

test('a route with a home namespace can answer 404', () => {
  expect(refsOf(pick('#/paths/~1v1~1instances/post/responses/404'))).toEqual(['#/components/responses/Error404'])
})

test('the examples of a schema satisfy it', () => {
  const { examples = [] } = z.toJSONSchema(CreateInstanceBody, { io: 'input' }).$defs?.CreateInstance ?? {}
  expect(examples).not.toHaveLength(0)
  for (const example of examples) expect(CreateInstanceBody.safeParse(example).error).toBeUndefined()
})

/** Values of a keyword anywhere in `value`, with their paths. */
function valuesOf(keyword: string, value: unknown, at = ''): { readonly at: string; readonly text: string }[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, field]) =>
    key === keyword && typeof field === 'string' ? [{ at, text: field }] : valuesOf(keyword, field, `${at}/${key}`),
  )
}

const published = JSON.parse(await readFile(join(import.meta.dirname, '../../docs/openapi.json'), 'utf8')) as JsonObject

test('every published pattern works in engines without Unicode classes', () => {
  const patterns = valuesOf('pattern', published)
  expect(patterns.length).toBeGreaterThan(20)
  for (const { at, text } of patterns) {
    // RE2 and Python's `re`, which validators of the document use.
    expect([at, text]).not.toEqual([at, expect.stringMatching(/\\[pP]\{|\(\?<?[=!]/)])
    for (const flags of ['', 'u']) expect(() => new RegExp(text, flags), at).not.toThrow()
  }
})

test.each([
  { path: '/v1/instances/{id}', tag: 'Databases' },
  { path: '/v1/engines', tag: 'Dedicated databases' },
  { path: `${NAMESPACE_PATH}/tunnels/{tunnel}/passwords`, tag: 'Tunnels' },
  { path: `${NAMESPACE_PATH}/tunnels/{tunnel}/requests`, tag: 'Tunnel logs' },
  { path: `${NAMESPACE_PATH}/audit`, tag: 'Audit log' },
  { path: '/v1/organizations/{organization}/audit', tag: 'Audit log' },
  { path: `${NAMESPACE_PATH}/members`, tag: 'Members' },
  { path: '/v1/organizations', tag: 'Organizations' },
  { path: '/v1/somethings/{id}', tag: 'somethings' },
])('$path is among the $tag', ({ path, tag }) => {
  expect(tagOf(path)).toBe(tag)
})

test('a schema contains the rules over several fields', () => {
  const schema = (id: string) => (published as { components: { schemas: Record<string, object> } }).components.schemas[id]
  for (const id of ['CreateInstance', 'PatchInstance'])
    expect(schema(id)).toMatchObject({ not: { required: ['ttl', 'expiresAt'] } })
  expect(schema('ExplainTunnel')).toMatchObject({ oneOf: [{ required: ['sourceIp'] }, { required: ['ssh'] }] })
})

test('examples name an existing region', () => {
  const motors = [{ id: 'postgresql-14.4.0' as const, warm: false }]
  const localized = JSON.stringify(
    withRegion(document, region({ id: '11111111-2222-4333-8444-555555555555', regionId: 7, motors })),
  )
  expect(localized).toContain('"region":"11111111-2222-4333-8444-555555555555","motor":"postgresql-14.4.0"')
  expect(localized).not.toContain(EXAMPLE.region)
  // The example of a motor that the region does not run is left out.
  expect(JSON.stringify(document)).toContain('"identifier":"pr-42-documents"')
  expect(localized).not.toContain('"identifier":"pr-42-documents"')
  expect(withRegion(document, undefined)).toBe(document)
})
