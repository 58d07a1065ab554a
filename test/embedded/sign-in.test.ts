import { once } from 'node:events'
import { createServer } from 'node:http'
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { codeOf } from '../support/api/answers.ts'
import { type Mooring, startMooring } from '../support/deployment/mooring.ts'

/** Identity provider of a company, reduced to what a verifier of its tokens needs. */
interface Issuer extends AsyncDisposable {
  readonly url: string
  sign(alg: Algorithm, claims: Readonly<Record<string, unknown>>): Promise<string>
}

const ALGORITHMS = ['EdDSA', 'ES256', 'RS256', 'PS256'] as const
type Algorithm = (typeof ALGORITHMS)[number]

async function startIssuer(): Promise<Issuer> {
  const pairs = new Map(await Promise.all(ALGORITHMS.map(async (alg) => [alg, await generateKeyPair(alg)] as const)))
  const keys: JWK[] = []
  for (const [alg, { publicKey }] of pairs) keys.push({ ...(await exportJWK(publicKey)), kid: alg, alg })
  const server = createServer((req, res) => {
    const document = req.url === '/keys' ? { keys } : { issuer: url, jwks_uri: `${url}/keys` }
    res.setHeader('Content-Type', 'application/json').end(JSON.stringify(document))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
  return {
    url,
    async sign(alg, claims) {
      const pair = pairs.get(alg)
      if (!pair) throw new Error(`no key for ${alg}`)
      return new SignJWT({ iss: url, aud: 'mooring', ...claims })
        .setProtectedHeader({ alg, kid: alg })
        .setExpirationTime('10 minutes')
        .sign(pair.privateKey)
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

const cleanup = new AsyncDisposableStack()
let issuer: Issuer
let mooring: Mooring
beforeAll(async () => {
  issuer = cleanup.use(await startIssuer())
  mooring = cleanup.use(await startMooring({ args: ['--issuer', `corp=${issuer.url}`] }))
})
afterAll(() => cleanup.disposeAsync())

const NAMESPACE = '/v1/organizations/default/namespaces/default'
const me = async (token: string) => mooring.call('GET', '/v1/me', { token })

describe("a company's own issuer", () => {
  test.each(['EdDSA', 'ES256', 'RS256'] as const)('signs with %s, and its users have its name as prefix', async (alg) => {
    const { status, body } = await me(await issuer.sign(alg, { sub: 'ada', groups: ['crew'] }))
    expect(status).toBe(200)
    expect(body.data).toEqual({ user: 'corp:ada', groups: ['corp:crew'], namespaces: [] })
  })

  test('authenticates a user, whom a membership authorizes', async () => {
    const token = await issuer.sign('ES256', { sub: 'grace' })
    await mooring.call('PUT', `${NAMESPACE}/members/corp:grace`, { body: { role: 'viewer' } })
    expect((await me(token)).body.data.namespaces).toEqual([{ organization: 'default', namespace: 'default', role: 'viewer' }])
    expect((await mooring.call('GET', '/v1/instances', { token })).status).toBe(200)
  })

  test('grants no role by claims: only Mooring’s own issuer does', async () => {
    const claims = {
      sub: 'eve',
      mooring_role: 'platform-admin',
      mooring_namespace: 'default/default',
      groups: ['mooring:platform-admins'],
    }
    const { body } = await me(await issuer.sign('RS256', claims))
    expect(body.data).toEqual({ user: 'corp:eve', groups: ['corp:mooring:platform-admins'], namespaces: [] })
    const token = await issuer.sign('RS256', claims)
    expect(codeOf(await mooring.call('POST', '/v1/organizations', { token, body: { slug: 'eve', name: 'Eve' } }))).toBe(
      '403 forbidden',
    )
  })

  test.each([
    { what: 'signed with an algorithm that is not accepted', alg: 'PS256', claims: { sub: 'ada' } },
    { what: 'in the name of the own issuer', alg: 'EdDSA', claims: { sub: 'ada', iss: 'mooring' } },
    { what: 'for another audience', alg: 'EdDSA', claims: { sub: 'ada', aud: 'corp' } },
    { what: 'for a system: user', alg: 'EdDSA', claims: { sub: 'system:admin' } },
    { what: 'for a system: group', alg: 'EdDSA', claims: { sub: 'ada', groups: ['system:masters'] } },
  ] as const)('cannot sign a valid token $what', async ({ alg, claims }) => {
    expect(codeOf(await me(await issuer.sign(alg, claims)))).toBe('401 unauthenticated')
  })
})

test('the 21st failed authentication in a minute is 429; a valid token from the same address still works', async () => {
  const refused = async () => me('rubbish')
  let answer = await refused()
  let count = 1
  while (answer.status === 401 && count < 25) [answer, count] = [await refused(), count + 1]
  // Five have failed in the tests above.
  expect(count).toBeLessThanOrEqual(21)
  expect(codeOf(answer)).toBe('429 rate_limited')
  expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1)
  expect(answer.headers).toMatchObject({ 'ratelimit-limit': '20', 'ratelimit-remaining': '0' })
  expect((await mooring.call('GET', '/v1/me')).status).toBe(200)
})
