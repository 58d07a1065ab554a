import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { codeOf } from '../support/api/answers.ts'
import { openDeployment } from '../support/deployment/deployment.ts'
import { expectSuccess, removeResource, type Tenant } from '../support/api/tenant.ts'

/** Checks that the examples of the OpenAPI document work unchanged. */

const deployment = openDeployment()
let acme: Tenant
let places: Readonly<Record<string, string>>
let document: z.output<typeof Document>

const Media = z.looseObject({ schema: z.looseObject({ $ref: z.string().optional() }), example: z.unknown() })
const Operation = z.looseObject({
  operationId: z.string(),
  parameters: z.array(z.looseObject({ name: z.string().optional(), in: z.string().optional(), example: z.string().optional() })),
  requestBody: z.looseObject({ content: z.looseObject({ 'application/json': Media }) }).optional(),
})
const Document = z.looseObject({
  paths: z.record(z.string(), z.record(z.string(), Operation)),
  components: z.looseObject({ schemas: z.record(z.string(), z.looseObject({ examples: z.array(z.unknown()).optional() })) }),
})

beforeAll(async () => {
  document = Document.parse(JSON.parse((await deployment.page('/openapi.json')).text))
  acme = await deployment.namespace()
  const [instance, tunnel] = [await acme.instance(), await acme.tunnel()]
  const body = { url: 'https://example.com/hook' }
  const path = `${acme.path}/tunnels/${tunnel.id}/webhooks`
  const { webhook } = (await expectSuccess(acme.as('editor')('POST', path, { body }))).body.data
  const { organization, namespace } = acme
  places = { organization, namespace, id: instance.id, tunnel: tunnel.id, webhook: webhook.id }
})
afterAll(async () => {
  const admin = deployment.admin()
  await removeResource(admin, `/v1/organizations/${acme.organization}/namespaces/staging`)
  await admin('DELETE', '/v1/organizations/acme')
  await deployment[Symbol.asyncDispose]()
})

const operations = () =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )

/** Example bodies of an operation. */
function bodiesOf({ requestBody }: z.output<typeof Operation>): readonly unknown[] {
  const media = requestBody?.content['application/json']
  const named = document.components.schemas[media?.schema.$ref?.split('/').at(-1) ?? '']?.examples ?? []
  return media ? [media.example, ...named] : []
}

const isOfPlatform = (path: string): boolean => /^\/v1\/organizations(\/\{organization\}\/namespaces)?$/.test(path)

test('every operation with a body documents an example body', () => {
  const without = operations().filter(
    ({ operation }) => operation.requestBody && bodiesOf(operation).some((body) => body === undefined),
  )
  expect(without.map(({ operation }) => operation.operationId)).toEqual([])
  expect(operations().filter(({ operation }) => operation.requestBody).length).toBeGreaterThan(8)
})

test('a running Mooring accepts every example body', async () => {
  for (const { path, method, operation } of operations()) {
    const examples = Object.fromEntries(operation.parameters.map(({ name = '', example = '' }) => [name, example]))
    const at = path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => encodeURIComponent(places[name] ?? examples[name] ?? ''))
    const seen = new Set<string>()
    for (const body of bodiesOf(operation)) {
      // The example of the media type is the first one of the schema.
      if (seen.has(JSON.stringify(body))) continue
      seen.add(JSON.stringify(body))
      const call = isOfPlatform(path) ? deployment.call : acme.as('admin')
      const answer = await call(method.toUpperCase(), at, { body })
      expect([operation.operationId, body, codeOf(answer)]).toEqual([
        operation.operationId,
        body,
        expect.stringMatching(/^20[01] OK$/),
      ])
    }
  }
})

test('the rejection of a missing field says that the field is required', async () => {
  for (const { path, method, operation } of operations()) {
    if (!operation.requestBody || method === 'patch') continue
    const examples = Object.fromEntries(operation.parameters.map(({ name = '', example = '' }) => [name, example]))
    const at = path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => encodeURIComponent(places[name] ?? examples[name] ?? ''))
    const answer = await (isOfPlatform(path) ? deployment.call : acme.as('admin'))(method.toUpperCase(), at, { body: {} })
    expect([operation.operationId, codeOf(answer)]).toEqual([operation.operationId, '400 invalid_request'])
    for (const { field, message } of answer.body.error.details)
      expect([operation.operationId, field, message]).toEqual([
        operation.operationId,
        field,
        expect.stringMatching(/^is required/),
      ])
  }
})

describe('the groups of operations at /docs', () => {
  test('are named after the resources, and each has a description', () => {
    const { tags } = z.looseObject({ tags: z.array(z.object({ name: z.string(), description: z.string() })) }).parse(document)
    expect(tags.map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        'Databases',
        'Regions',
        'Tunnels',
        'Tunnel logs',
        'Audit log',
        'Organizations',
        'Members',
        'API tokens',
      ]),
    )
    for (const { name, description } of tags) expect([name, description.length > 30]).toEqual([name, true])
  })

  test('follow an introduction that names the first calls', () => {
    const { info } = z.looseObject({ info: z.looseObject({ description: z.string() }) }).parse(document)
    for (const call of ['GET /v1/me', 'GET /v1/regions', 'POST /v1/instances']) expect(info.description).toContain(call)
  })
})

test('the region of the examples exists', async () => {
  const { regions } = (await expectSuccess(deployment.call('GET', '/v1/regions'))).body.data
  const { CreateInstance } = document.components.schemas
  const [example] = z.array(z.looseObject({ region: z.string(), motor: z.string() })).parse(CreateInstance?.examples)
  const region = regions.find(({ id }) => id === example?.region)
  expect(region?.motors.map(({ id }) => id)).toContain(example?.motor)
})
