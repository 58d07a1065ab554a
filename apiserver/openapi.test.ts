import { expect, test } from 'vitest'
import { z } from 'zod'
import { CreateInstanceBody } from './instance-body.ts'
import { InstanceData, InstanceParams } from './instance-deps.ts'
import { openApiDocument } from './openapi.ts'
import { PageQuery } from './paging.ts'
import { route } from './route.ts'

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

test('every reference leads somewhere', () => {
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

test('a request is closed to unknown fields, an answer is open', () => {
  expect(pick('#/components/schemas/CreateInstance')).toHaveProperty('additionalProperties', false)
  expect(pick('#/components/schemas/Instance')).not.toHaveProperty('additionalProperties')
})

test('each error status lists its codes', () => {
  expect(pick('#/components/responses/Error422/description')).toContain('`unknown_region`')
  expect(refsOf(pick('#/paths/~1v1~1instances/post/responses'))).toContain('#/components/responses/Error422')
})

test('a home namespace that the header names may not be found', () => {
  expect(refsOf(pick('#/paths/~1v1~1instances/post/responses/404'))).toEqual(['#/components/responses/Error404'])
})

test('the examples of a schema satisfy it', () => {
  const { examples = [] } = z.toJSONSchema(CreateInstanceBody, { io: 'input' }).$defs?.CreateInstance ?? {}
  expect(examples).not.toHaveLength(0)
  for (const example of examples) expect(CreateInstanceBody.safeParse(example).error).toBeUndefined()
})
