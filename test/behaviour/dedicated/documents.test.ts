import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { codeOf } from '../../support/api/answers.ts'
import { createDatabase, databasePath, dedicated } from '../../support/api/databases.ts'
import { expectSuccess, type Tenant } from '../../support/api/tenant.ts'
import { openDeployment } from '../../support/deployment/deployment.ts'
import { patient } from '../../support/patience.ts'

/** Checks that the examples in the OpenAPI document of the dedicated listener work unchanged but for the namespace. */

const deployment = openDeployment()
let acme: Tenant
let schemas: z.output<typeof Document>['components']['schemas']
beforeAll(async () => {
  acme = await deployment.namespace()
  const { text } = await deployment.page('/openapi.json', { on: 'dedicated' })
  schemas = Document.parse(JSON.parse(text)).components.schemas
})
afterAll(() => deployment[Symbol.asyncDispose]())

const Document = z.looseObject({
  components: z.looseObject({
    schemas: z.record(z.string(), z.looseObject({ examples: z.array(z.record(z.string(), z.unknown())).optional() })),
  }),
})

const examplesOf = (name: string) => schemas[name]?.examples ?? expect.fail(`${name} has no example`)

test('the example bodies of POST and PATCH are accepted', { timeout: patient(300_000) }, async () => {
  const editor = dedicated(acme.as('editor'))
  const { organization, namespace } = acme
  const [example] = examplesOf('CreateDatabase')
  const made = await createDatabase(editor, { ...example, organization, namespace })
  expect(made).toMatchObject({ organization, namespace, name: example?.name, firewallRules: example?.firewallRules })
  for (const body of examplesOf('PatchDatabase')) {
    expect([body, codeOf(await editor('PATCH', databasePath(made), { body }))]).toEqual([body, '200 OK'])
  }
})

test('region and engine of the example exist, and a region of them runs the engine', async () => {
  const [example] = z.array(z.looseObject({ region: z.string(), engine: z.string() })).parse(examplesOf('CreateDatabase'))
  const { regions } = (await expectSuccess(deployment.call('GET', '/v1/regions', { on: 'dedicated' }))).body.data
  expect(regions.find(({ id }) => id === example?.region)?.motors.map(({ id }) => id)).toContain(example?.engine)
})

test('a body without fields is rejected with each required field', async () => {
  const { status, body } = await dedicated(acme.as('editor'))('POST', '/v1/databases', { body: {} })
  expect(status).toBe(400)
  const message = 'is required'
  expect(body.error.details).toEqual(['name', 'engine', 'region', 'plan'].map((field) => ({ field, message })))
})
