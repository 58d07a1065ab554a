import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectSuccess, type Tenant } from '../../support/api/tenant.ts'
import { openDeployment } from '../../support/deployment/deployment.ts'
import { clientOf } from '../../support/families/family-client.ts'
import { contentOf } from '../../support/families/family-content.ts'
import { motorsUnderTest } from '../../support/families/motors-under-test.ts'

// test/servers has each kind of object of each family; these tests check that an instance from the API is such a copy.

const deployment = openDeployment()
let acme: Tenant
beforeAll(async () => {
  acme = await deployment.namespace()
})
afterAll(() => deployment[Symbol.asyncDispose]())

describe.each(motorsUnderTest())('a template of %s', (motor) => {
  const { furnish, read, violate } = contentOf(motor)
  const client = clientOf(motor)

  test('gives its copy rows, constraints, indexes, views and code, which a reset restores', async () => {
    const source = await acme.instance({ motor })
    await furnish(source)
    const content = await read(source)
    const copy = await acme.instance({ motor, template: source.id })
    expect(await read(copy)).toEqual(content)
    await expect(violate(copy)).rejects.toThrow()
    await client.add(copy, 'mine')
    expect(await client.items(source)).toEqual([])
    await expectSuccess(acme.as('editor')('POST', `/v1/instances/${copy.id}/reset`))
    expect(await client.items(copy)).toEqual([])
    expect(await read(copy)).toEqual(content)
  })

  test('may be deleted before its copy', async () => {
    const source = await acme.instance({ motor })
    await client.add(source, 'seed')
    const copy = await acme.instance({ motor, template: source.id })
    await expectSuccess(acme.as('editor')('DELETE', `/v1/instances/${source.id}`))
    expect(await client.items(copy)).toEqual(['seed'])
  })
})
