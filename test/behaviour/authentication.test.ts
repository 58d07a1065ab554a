import { createPublicKey, createSecretKey, generateKeyPairSync } from 'node:crypto'
import { type JWTPayload, SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { codeOf } from '../support/api/answers.ts'
import { openDeployment } from '../support/deployment/deployment.ts'
import { expectSuccess, type Tenant } from '../support/api/tenant.ts'

const deployment = openDeployment()
const { tokens } = deployment
let acme: Tenant
beforeAll(async () => {
  acme = await deployment.namespace()
})
afterAll(() => deployment[Symbol.asyncDispose]())

const LISTENERS = ['shared', 'dedicated'] as const
const now = () => Math.floor(Date.now() / 1e3)
const good = () => tokens.claims({ subject: 'ada', namespace: acme.home, role: 'editor' })
const without = (claim: string) => Object.fromEntries(Object.entries(good()).filter(([name]) => name !== claim))
const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** Fetches the public key that the issuer publishes. */
async function publicKey() {
  const { keys } = z
    .object({ keys: z.array(z.looseObject({ kid: z.string() })) })
    .parse(JSON.parse((await deployment.page('/.well-known/jwks.json')).text))
  return keys[0] ?? { kid: '' }
}

async function hmac(payload: JWTPayload, secret: Uint8Array): Promise<string> {
  const { kid } = await publicKey()
  return new SignJWT(payload).setProtectedHeader({ alg: 'HS256', kid, typ: 'JWT' }).sign(createSecretKey(secret))
}

async function byUnknownKey(alg: 'EdDSA' | 'ES256' | 'RS256'): Promise<string> {
  const { privateKey } =
    alg === 'EdDSA'
      ? generateKeyPairSync('ed25519')
      : alg === 'ES256'
        ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
        : generateKeyPairSync('rsa', { modulusLength: 2048 })
  return new SignJWT(good()).setProtectedHeader({ alg, kid: (await publicKey()).kid, typ: 'JWT' }).sign(privateKey)
}

async function tampered(): Promise<string> {
  const [head, , signature] = (await tokens.sign(good())).split('.')
  return [head, base64({ ...good(), mooring_role: 'platform-admin' }), signature].join('.')
}

const FORGED: readonly { readonly what: string; readonly make: () => Promise<string> | string }[] = [
  { what: 'of rubbish', make: () => 'rubbish' },
  { what: 'of three dots', make: () => '...' },
  { what: 'with alg none', make: () => `${base64({ alg: 'none', typ: 'JWT' })}.${base64(good())}.` },
  { what: 'with alg None', make: () => `${base64({ alg: 'None' })}.${base64(good())}.` },
  { what: 'without a signature', make: async () => (await tokens.sign(good())).replace(/[^.]+$/, '') },
  { what: 'with claims changed after the signature', make: tampered },
  {
    what: 'signed with the public key as a secret',
    make: async () => hmac(good(), Buffer.from(String((await publicKey()).x), 'base64url')),
  },
  {
    what: 'signed with the PEM of the public key as a secret',
    make: async () =>
      hmac(
        good(),
        Buffer.from(createPublicKey({ key: await publicKey(), format: 'jwk' }).export({ type: 'spki', format: 'pem' })),
      ),
  },
  { what: 'signed with an unknown EdDSA key', make: () => byUnknownKey('EdDSA') },
  { what: 'signed with an unknown ES256 key', make: () => byUnknownKey('ES256') },
  { what: 'signed with an unknown RS256 key', make: () => byUnknownKey('RS256') },
  { what: 'of another issuer', make: () => tokens.sign({ ...good(), iss: 'https://issuer.example' }) },
  { what: 'of no issuer', make: () => tokens.sign(without('iss')) },
  { what: 'for another audience', make: () => tokens.sign({ ...good(), aud: 'kubernetes' }) },
  { what: 'for no audience', make: () => tokens.sign(without('aud')) },
  { what: 'without an expiry time', make: () => tokens.sign(without('exp')) },
  { what: 'without a subject', make: () => tokens.sign(without('sub')) },
  { what: 'with an empty subject', make: () => tokens.sign({ ...good(), sub: '' }) },
  { what: 'that has expired', make: () => tokens.sign({ ...good(), exp: now() - 60 }) },
  { what: 'that is not valid yet', make: () => tokens.sign({ ...good(), nbf: now() + 600 }) },
  { what: 'of a system: user', make: () => tokens.sign({ ...good(), sub: 'system:admin' }) },
  { what: 'of a system: group', make: () => tokens.sign({ ...good(), groups: ['system:masters'] }) },
  { what: 'with an unknown role', make: () => tokens.sign({ ...good(), mooring_role: 'root' }) },
  { what: 'with a role but no namespace', make: () => tokens.sign(without('mooring_namespace')) },
  { what: 'with an invalid home namespace', make: () => tokens.sign({ ...good(), mooring_namespace: '../x' }) },
  { what: 'that only looks like an API token', make: () => `moor_${'a'.repeat(46)}` },
  { what: 'of 9,000 characters', make: () => 'x'.repeat(9_000) },
]

describe.each(LISTENERS)('the %s listener', (on) => {
  test.each(FORGED)('rejects a token $what', async ({ make }) => {
    const answer = await deployment.call('GET', '/v1/me', { on, token: await make() })
    expect(codeOf(answer)).toBe('401 unauthenticated')
    expect(answer.headers['www-authenticate']).toBe('Bearer')
  })

  test.each([
    { what: 'no Authorization header', headers: {} },
    { what: 'Basic credentials', headers: { Authorization: 'Basic YWRtaW46YWRtaW4=' } },
    { what: 'an empty token', headers: { Authorization: 'Bearer ' } },
    { what: 'a header without a scheme', headers: { Authorization: 'secret' } },
  ])('rejects a call with $what', async ({ headers }) => {
    const answer = await deployment.call('GET', '/v1/regions', { on, token: null, headers })
    expect(codeOf(answer)).toBe('401 unauthenticated')
    expect(answer.headers['www-authenticate']).toBe('Bearer')
  })

  test('accepts a valid JWT and returns its user and groups', async () => {
    const token = await tokens.mint({ subject: 'ada', groups: ['crew'], namespace: acme.home, role: 'editor' })
    const { status, body } = await deployment.call('GET', '/v1/me', { on, token })
    expect(status).toBe(200)
    expect(body.data).toMatchObject({
      user: 'local:ada',
      groups: expect.arrayContaining(['local:crew']) as string[],
      namespaces: [{ organization: acme.organization, namespace: acme.namespace, role: 'editor' }],
    })
  })

  test('accepts an API token', async () => {
    const { apiToken } = (
      await expectSuccess(acme.as('admin')('POST', `${acme.path}/api-tokens`, { body: { name: 'ci', role: 'viewer' } }))
    ).body.data
    const { status, body } = await deployment.call('GET', '/v1/me', { on, token: apiToken.token })
    expect(status).toBe(200)
    expect(body.data.namespaces).toEqual([{ organization: acme.organization, namespace: acme.namespace, role: 'viewer' }])
  })

  test('checks the token before the rest of the request', async () => {
    expect(codeOf(await deployment.call('DELETE', `/v1/organizations/${acme.organization}`, { on, token: 'rubbish' }))).toBe(
      '401 unauthenticated',
    )
  })
})

test('the API rejects a deleted API token and one with a changed character', async () => {
  const admin = acme.as('admin')
  const { apiToken } = (await expectSuccess(admin('POST', `${acme.path}/api-tokens`, { body: { name: 'short', role: 'admin' } })))
    .body.data
  const { token } = apiToken
  const typo = token.slice(0, -1) + (token.endsWith('a') ? 'b' : 'a')
  expect((await deployment.call('GET', '/v1/me', { token })).status).toBe(200)
  expect((await deployment.call('GET', '/v1/me', { token: typo })).status).toBe(401)
  await expectSuccess(admin('DELETE', `${acme.path}/api-tokens/${apiToken.id}`))
  expect((await deployment.call('GET', '/v1/me', { token })).status).toBe(401)
})

test('an API token is authorized only in its own namespace', async () => {
  const other = await deployment.namespace()
  const { token } = (
    await expectSuccess(acme.as('admin')('POST', `${acme.path}/api-tokens`, { body: { name: 'own', role: 'admin' } }))
  ).body.data.apiToken
  expect((await deployment.call('GET', acme.path, { token })).status).toBe(200)
  expect((await deployment.call('GET', other.path, { token })).status).toBe(404)
  expect((await deployment.call('GET', '/v1/instances', { token, headers: { 'Mooring-Namespace': other.home } })).status).toBe(
    400,
  )
})

test('a caller without any role sees regions and no namespace', async () => {
  const token = await tokens.mint({ subject: 'outsider' })
  expect((await deployment.call('GET', '/v1/me', { token })).body.data.namespaces).toEqual([])
  expect((await deployment.call('GET', '/v1/regions', { token })).status).toBe(200)
  expect((await deployment.call('GET', '/v1/organizations', { token })).body.data.organizations).toEqual([])
  expect(codeOf(await deployment.call('GET', '/v1/instances', { token }))).toBe('400 namespace_required')
  expect(codeOf(await deployment.call('GET', acme.path, { token }))).toBe('404 not_found')
})
