import { afterAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { openDeployment } from '../support/deployment/deployment.ts'

const deployment = openDeployment()
afterAll(() => deployment[Symbol.asyncDispose]())

const LISTENERS = ['shared', 'dedicated'] as const
const METHOD = /^(get|post|put|patch|delete)$/
/** Deletes what no resource with an ETag shows. */
const DELETION_OF_SEVERAL = 'deleteBackups'

const Parameter = z.union([
  z.strictObject({ $ref: z.string() }),
  z.looseObject({
    name: z.string(),
    in: z.enum(['path', 'query', 'header', 'cookie']),
    required: z.boolean().optional(),
    schema: z.looseObject({}),
  }),
])
const Operation = z.looseObject({
  operationId: z.string().regex(/^[a-zA-Z]+$/),
  summary: z.string(),
  tags: z.array(z.string()),
  parameters: z.array(Parameter).optional(),
  responses: z.record(z.string().regex(/^[1-5]\d\d$/), z.looseObject({})),
})
/** Part of OpenAPI 3.1's requirements that applies to our documents. */
const Document = z.looseObject({
  openapi: z.string().regex(/^3\.1\.\d+$/),
  info: z.looseObject({ title: z.string(), version: z.string(), license: z.looseObject({ name: z.string() }) }),
  security: z.array(z.record(z.string(), z.array(z.string()))),
  tags: z.array(z.looseObject({ name: z.string() })),
  paths: z.record(z.string().regex(/^\//), z.record(z.string().regex(METHOD), Operation)),
  components: z.looseObject({ securitySchemes: z.looseObject({}), schemas: z.record(z.string(), z.looseObject({})) }),
})

const documentOf = async (on: (typeof LISTENERS)[number]) =>
  JSON.parse((await deployment.page('/openapi.json', { on })).text) as unknown

/** Returns every `$ref` anywhere in `value`. */
function refsOf(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, field]) => (key === '$ref' && typeof field === 'string' ? [field] : refsOf(field)))
}

function at(document: unknown, ref: string): unknown {
  const keys = ref.replace(/^#\//, '').split('/')
  return keys.reduce<unknown>(
    (value, key) => (value as Record<string, unknown> | undefined)?.[key.replaceAll('~1', '/')],
    document,
  )
}

describe.each(LISTENERS)('/openapi.json of the %s listener', (on) => {
  test('is a valid OpenAPI 3.1 document', async () => {
    const { headers } = await deployment.page('/openapi.json', { on })
    expect(headers['content-type']).toMatch(/^application\/json/)
    const document = Document.parse(await documentOf(on))
    const operations = Object.values(document.paths).flatMap((path) => Object.values(path))
    const ids = operations.map(({ operationId }) => operationId)
    expect(new Set(ids).size).toBe(ids.length)
    const tags = new Set(document.tags.map(({ name }) => name))
    for (const operation of operations) for (const tag of operation.tags) expect(tags).toContain(tag)
    const schemes = Object.keys(document.components.securitySchemes)
    for (const requirement of document.security) expect(schemes).toEqual(expect.arrayContaining(Object.keys(requirement)))
  })

  test('resolves every reference within itself', async () => {
    const document = await documentOf(on)
    for (const ref of new Set(refsOf(document))) expect(at(document, ref), ref).toBeDefined()
  })

  test('documents If-Match for each change of one resource', async () => {
    const { paths } = Document.parse(await documentOf(on))
    const changes = Object.values(paths)
      .flatMap((path) =>
        Object.entries(path).flatMap(([method, operation]) => (/^(put|patch|delete)$/.test(method) ? [operation] : [])),
      )
      .filter(({ operationId }) => operationId !== DELETION_OF_SEVERAL)
    for (const { operationId, parameters } of changes)
      expect([operationId, parameters]).toContainEqual(
        expect.arrayContaining([{ $ref: '#/components/parameters/IfMatch' }]) as unknown,
      )
  })

  test('has a required parameter for each name in a path', async () => {
    const { paths } = Document.parse(await documentOf(on))
    for (const [path, operations] of Object.entries(paths)) {
      const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
      for (const { parameters = [] } of Object.values(operations)) {
        const found = parameters.flatMap((parameter) => ('in' in parameter && parameter.in === 'path' ? [parameter] : []))
        expect(found.map(({ name }) => name)).toEqual(names)
        expect(found.every(({ required }) => required === true)).toBe(true)
      }
    }
  })

  test('has every operation of the API, and no other', async () => {
    const { paths } = Document.parse(await documentOf(on))
    const calls = Object.entries(paths).flatMap(([path, of]) =>
      Object.keys(of).map((method) => `${method.toUpperCase()} ${path}`),
    )
    const organization = '/v1/organizations/{organization}'
    const namespace = `${organization}/namespaces/{namespace}`
    const both = [
      ...['GET /v1/regions', 'GET /v1/me', 'GET /v1/organizations', 'POST /v1/organizations'],
      ...[`GET ${organization}`, `DELETE ${organization}`, `GET ${organization}/namespaces`, `POST ${organization}/namespaces`],
      ...[`GET ${namespace}`, `DELETE ${namespace}`, `GET ${namespace}/members`],
      ...[`PUT ${namespace}/members/{subject}`, `DELETE ${namespace}/members/{subject}`],
      ...[`GET ${namespace}/api-tokens`, `POST ${namespace}/api-tokens`, `DELETE ${namespace}/api-tokens/{id}`],
    ]
    const own = {
      shared: [
        ...['GET /v1/instances', 'POST /v1/instances', 'GET /v1/instances/{id}', 'PATCH /v1/instances/{id}'],
        ...['DELETE /v1/instances/{id}', 'POST /v1/instances/{id}/password', 'POST /v1/instances/{id}/reset'],
      ],
      dedicated: [
        ...['GET /v1/engines', 'GET /v1/databases/create/metadata', 'GET /v1/databases', 'POST /v1/databases'],
        ...[
          'GET /v1/databases/{id}',
          'PATCH /v1/databases/{id}',
          'DELETE /v1/databases/{id}',
          'POST /v1/databases/{id}/password',
        ],
      ],
    }
    expect(calls).toEqual(expect.arrayContaining([...both, ...own[on]]))
    for (const call of calls) {
      const [method = '', path = ''] = call.split(' ')
      const refused = await deployment.page(path.replaceAll(/\{\w+\}/g, 'x'), { on, method })
      expect([call, refused.status]).toEqual([call, 401])
    }
  })

  test('is shown at /docs, which loads files only from Mooring', async () => {
    const page = await deployment.page('/docs', { on })
    expect(page.headers['content-type']).toMatch(/^text\/html/)
    const loaded = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path = '']) => path)
    expect(loaded.length).toBeGreaterThan(2)
    for (const path of loaded) expect([path, (await deployment.page(path, { on })).status]).toEqual([path, 200])
    expect(page.headers['content-security-policy']).toContain(`script-src 'self'`)
  })

  test.each(['/healthz', '/readyz'])('is served beside %s, which needs no token', async (path) => {
    const { status, headers } = await deployment.page(path, { on })
    expect(status).toBe(200)
    expect(headers['content-type']).toMatch(/^application\/json/)
  })

  test('is served beside the discovery documents of the issuer, which publish only its public keys', async () => {
    const { issuer } = deployment.installation.issuer
    const discovery = z
      .looseObject({ issuer: z.string(), jwks_uri: z.url() })
      .parse(JSON.parse((await deployment.page('/.well-known/openid-configuration', { on })).text))
    expect(discovery.issuer).toBe(issuer)
    expect(new URL(discovery.jwks_uri).pathname).toBe('/.well-known/jwks.json')
    const { keys } = z
      .object({ keys: z.array(z.record(z.string(), z.string())) })
      .parse(JSON.parse((await deployment.page('/.well-known/jwks.json', { on })).text))
    expect(keys.length).toBeGreaterThan(0)
    for (const key of keys) for (const secret of ['d', 'p', 'q', 'k']) expect(key).not.toHaveProperty(secret)
  })
})
