import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { codeOf, fieldsOf } from '../support/api/answers.ts'
import { freshSlug, openDeployment } from '../support/deployment/deployment.ts'
import { expectSuccess, type Tenant } from '../support/api/tenant.ts'

const deployment = openDeployment()
let acme: Tenant
beforeAll(async () => {
  acme = await deployment.namespace()
})
afterAll(() => deployment[Symbol.asyncDispose]())

describe('the home namespace of a call without slugs', () => {
  let zeta: Tenant
  let member: string
  const identifiers = async (token: string, headers: Record<string, string> = {}) => {
    const { body } = await deployment.call('GET', '/v1/instances', { token, headers })
    return 'data' in body ? body.data.instances.map(({ identifier }) => identifier) : body
  }
  const named = (tenant: Tenant) => ({ 'Mooring-Namespace': tenant.home })

  beforeAll(async () => {
    ;[acme, zeta] = [await deployment.namespace(), await deployment.namespace()]
    member = `local:${freshSlug()}`
    for (const tenant of [acme, zeta]) {
      await tenant.instance({ identifier: tenant.organization })
      await expectSuccess(
        tenant.as('admin')('PUT', `${tenant.path}/members/${encodeURIComponent(member)}`, { body: { role: 'viewer' } }),
      )
    }
  })
  const tokenOf = (namespace?: string) => deployment.tokens.mint({ subject: member.replace('local:', ''), namespace })

  async function apiTokenOf(tenant: Tenant): Promise<string> {
    const body = { name: 'x', role: 'viewer' }
    return (await expectSuccess(tenant.as('admin')('POST', `${tenant.path}/api-tokens`, { body }))).body.data.apiToken.token
  }
  const OWN = [
    { of: "an API token's own", tokenFor: () => apiTokenOf(acme) },
    { of: "the claim's", tokenFor: () => tokenOf(acme.home) },
  ]

  test.each(OWN)('is $of, without the header and with the same namespace in the header', async ({ tokenFor }) => {
    const token = await tokenFor()
    expect(await identifiers(token)).toEqual([acme.organization])
    expect(await identifiers(token, named(acme))).toEqual([acme.organization])
  })

  test.each(OWN)('is only $of: a header with another namespace is 400 and changes nothing', async ({ tokenFor }) => {
    const token = await tokenFor()
    for (const [method, body] of [
      ['GET', undefined],
      ['POST', deployment.instanceBody()],
    ] as const) {
      for (const header of [zeta.home, 'nowhere/prod', 'nowhere']) {
        const answer = await deployment.call(method, '/v1/instances', { token, body, headers: { 'Mooring-Namespace': header } })
        expect([codeOf(answer), fieldsOf(answer)]).toEqual(['400 invalid_request', ['Mooring-Namespace']])
      }
    }
    expect(await identifiers(await tokenOf(), named(zeta))).toEqual([zeta.organization])
  })

  test('is that of the header when the token names none', async () => {
    expect(await identifiers(await tokenOf(), named(zeta))).toEqual([zeta.organization])
    expect(await identifiers(await tokenOf(), named(acme))).toEqual([acme.organization])
  })

  test('is a required header when the caller has several namespaces', async () => {
    expect(codeOf(await deployment.call('GET', '/v1/instances', { token: await tokenOf() }))).toBe('400 namespace_required')
    expect(
      codeOf(await deployment.call('POST', '/v1/instances', { token: await tokenOf(), body: deployment.instanceBody() })),
    ).toBe('400 namespace_required')
  })

  test('is the only namespace in which the caller has a role', async () => {
    const only = freshSlug()
    await expectSuccess(acme.as('admin')('PUT', `${acme.path}/members/local:${only}`, { body: { role: 'viewer' } }))
    expect(await identifiers(await deployment.tokens.mint({ subject: only }))).toEqual([acme.organization])
  })

  test.each(['nowhere/prod', 'nowhere', '', 'a/b/c', '../..', `A/${'x'.repeat(99)}`])(
    'is not found when the header is %j',
    async (name) => {
      const answer = await deployment.call('GET', '/v1/instances', {
        token: await tokenOf(),
        headers: { 'Mooring-Namespace': name },
      })
      expect(['404 not_found', '400 invalid_request']).toContain(codeOf(answer))
    },
  )

  test('is not found when it belongs to another tenant', async () => {
    const otherTenant = await deployment.namespace()
    const headers = named(otherTenant)
    expect(codeOf(await deployment.call('GET', '/v1/instances', { token: await tokenOf(), headers }))).toBe('404 not_found')
  })
})
