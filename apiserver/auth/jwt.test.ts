import { createPublicKey } from 'node:crypto'
import { exportJWK, generateKeyPair, importJWK, type JWTPayload, SignJWT } from 'jose'
import { beforeAll, describe, expect, test } from 'vitest'
import { AuthenticationError, type FailureReason } from './authenticate.ts'
import { generateIssuerKey } from '../../operator/installation/api-secret.ts'
import { createIssuer, type TokenIssuer } from './issuer.ts'
import { createJwtVerifier } from './jwt.ts'
import type { IssuerConfig } from './trusted-issuers.ts'

type Signer = Awaited<ReturnType<typeof generateKeyPair>>
const OWN = 'https://mooring.test'
const CORP = 'https://login.corp.test'
const ALGORITHMS = ['EdDSA', 'ES256', 'RS256'] as const

let own: TokenIssuer
let keys: Readonly<Record<(typeof ALGORITHMS)[number], Signer>>
let issuers: readonly IssuerConfig[]
let verify: (token: string) => Promise<unknown>

beforeAll(async () => {
  own = await createIssuer({ privateKey: await generateIssuerKey(), issuer: OWN })
  const [eddsa, es256, rs256] = await Promise.all(
    ALGORITHMS.map((algorithm) => generateKeyPair(algorithm, { extractable: true })),
  )
  if (!eddsa || !es256 || !rs256) throw new Error('no keys')
  keys = { EdDSA: eddsa, ES256: es256, RS256: rs256 }
  const jwks = {
    keys: await Promise.all(ALGORITHMS.map(async (alg) => ({ ...(await exportJWK(keys[alg].publicKey)), kid: alg, alg }))),
  }
  issuers = [
    { name: 'local', issuer: OWN, keys: { jwks: own.jwks }, own: true },
    { name: 'corp', issuer: CORP, keys: { jwks } },
  ]
  verify = createJwtVerifier({ issuers })
})

const now = () => Math.floor(Date.now() / 1e3)
const good = (): JWTPayload => ({ iss: CORP, aud: 'mooring', sub: 'alice', exp: now() + 60 })

interface Signed {
  readonly alg?: (typeof ALGORITHMS)[number]
  readonly header?: Readonly<Record<string, unknown>>
}

const sign = (claims: JWTPayload, { alg = 'EdDSA', header = {} }: Signed = {}): Promise<string> =>
  new SignJWT(claims).setProtectedHeader({ alg, kid: alg, ...header }).sign(keys[alg].privateKey)

const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

async function expectRefused(token: string, reason: FailureReason = 'invalid'): Promise<void> {
  const error: unknown = await verify(token).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(AuthenticationError)
  expect(error).toMatchObject({ status: 401, reason })
}

describe('a valid token', () => {
  test.each(ALGORITHMS)('signed with %s gives its user and groups the name of the issuer', async (alg) => {
    const token = await sign({ ...good(), groups: ['devs', 'mooring:platform-admins'], mooring_namespace: 'acme/prod' }, { alg })
    expect(await verify(token)).toEqual({
      user: 'corp:alice',
      groups: ['corp:devs', 'corp:mooring:platform-admins'],
      home: 'acme/prod',
    })
  })

  test('with several audiences, or within the clock tolerance, is accepted', async () => {
    await verify(await sign({ ...good(), aud: ['other', 'mooring'] }))
    await verify(await sign({ ...good(), exp: now() - 2 }))
    await verify(await sign({ ...good(), nbf: now() + 2 }))
  })

  test('of Mooring’s own issuer has its role as a group', async () => {
    const ttlSeconds = 60
    const editor = await own.sign({ subject: 'ci', namespace: 'acme/prod', role: 'editor', ttlSeconds })
    expect(await verify(editor)).toEqual({ user: 'local:ci', groups: ['mooring:acme--prod:editor'], home: 'acme/prod' })
    const admin = await own.sign({ subject: 'root', namespace: 'default/default', role: 'platform-admin', ttlSeconds })
    expect(await verify(admin)).toMatchObject({ groups: ['mooring:platform-admins'], home: 'default/default' })
    expect(await verify(await own.sign({ subject: 'bob', groups: ['devs'], ttlSeconds }))).toEqual({
      user: 'local:bob',
      groups: ['local:devs'],
    })
  })

  test('of another issuer gets no role from its claim', async () => {
    const token = await sign({ ...good(), mooring_role: 'platform-admin', mooring_namespace: 'acme/prod' })
    expect(await verify(token)).toMatchObject({ groups: [] })
  })

  test('is accepted from the cache, but not past its expiry', async () => {
    let time = Date.now()
    const remembering = createJwtVerifier({ issuers, now: () => time })
    const token = await sign({ ...good(), exp: now() + 30 })
    const principal = await remembering(token)
    expect(await remembering(token)).toBe(principal)
    time += 40_000
    await expect(remembering(token)).rejects.toMatchObject({ reason: 'expired' })
  })
})

describe('a token is refused', () => {
  test.each<{ when: string; claims: JWTPayload; reason?: FailureReason }>([
    { when: 'of an unknown issuer', claims: { iss: 'https://evil.test' } },
    { when: 'of an issuer in other letters', claims: { iss: CORP.toUpperCase() } },
    { when: 'for another audience', claims: { aud: 'other' } },
    { when: 'expired', claims: { exp: 1_000_000 }, reason: 'expired' },
    { when: 'not valid yet', claims: { nbf: 9_000_000_000 }, reason: 'not_yet_valid' },
    { when: 'with a name of Kubernetes', claims: { sub: 'system:admin' } },
    { when: 'with a group of Kubernetes', claims: { groups: ['devs', 'system:masters'] } },
    { when: 'with an empty name', claims: { sub: '' } },
    { when: 'with a control character in its name', claims: { sub: 'a\u0000b' } },
    { when: 'with groups that are no list', claims: { groups: 'devs' } },
    { when: 'with an endless name', claims: { sub: 'x'.repeat(257) } },
    { when: 'with a home that is no pair of slugs', claims: { mooring_namespace: '../prod' } },
  ])('$when', async ({ claims, reason }) => {
    await expectRefused(await sign({ ...good(), ...claims }), reason)
  })

  test.each(['iss', 'aud', 'exp', 'sub'])('without %s', async (claim) => {
    const claims = Object.fromEntries(Object.entries(good()).filter(([name]) => name !== claim))
    await expectRefused(await sign(claims))
  })

  test('unsigned, with alg none in any case', async () => {
    for (const alg of ['none', 'None', 'NONE', '']) await expectRefused(`${part({ alg, kid: 'EdDSA' })}.${part(good())}.`)
  })

  test.each(ALGORITHMS)('signed by HMAC with the public key of %s as the secret', async (alg) => {
    const jwk = await exportJWK(keys[alg].publicKey)
    const pem = createPublicKey({ key: jwk, format: 'jwk' }).export({ type: 'spki', format: 'pem' })
    for (const secret of [Buffer.from(pem), Buffer.from(JSON.stringify(jwk)), Buffer.from(jwk.x ?? jwk.n ?? '', 'base64url')]) {
      for (const hmac of ['HS256', 'HS384', 'HS512']) {
        await expectRefused(await new SignJWT(good()).setProtectedHeader({ alg: hmac, kid: alg }).sign(secret))
      }
    }
  })

  test('signed by another algorithm of an issuer’s own key', async () => {
    const jwk = await exportJWK(keys.RS256.privateKey)
    const pss = await importJWK(jwk, 'PS256')
    await expectRefused(await new SignJWT(good()).setProtectedHeader({ alg: 'PS256', kid: 'RS256' }).sign(pss))
  })

  test('signed with a key from its own header (jwk, jku, x5u)', async () => {
    const mine = await generateKeyPair('EdDSA', { extractable: true })
    const jwk = await exportJWK(mine.publicKey)
    for (const kid of ['EdDSA', '../../dev/null', "' OR 1=1 --", undefined]) {
      const header = {
        alg: 'EdDSA',
        jwk,
        jku: 'https://evil.test/jwks.json',
        x5u: 'https://evil.test/c.pem',
        ...(kid === undefined ? {} : { kid }),
      }
      await expectRefused(await new SignJWT(good()).setProtectedHeader(header).sign(mine.privateKey))
    }
  })

  test('of one issuer that another one signed', async () => {
    await expectRefused(await sign({ ...good(), iss: OWN, mooring_role: 'platform-admin' }))
  })

  test('with a critical header that is not understood', async () => {
    const [, payload = '', signature = ''] = (await sign(good())).split('.')
    await expectRefused(`${part({ alg: 'EdDSA', kid: 'EdDSA', crit: ['b64'], b64: false })}.${payload}.${signature}`)
  })

  test('with one changed bit in its payload or signature, or with another form', async () => {
    const token = await sign(good())
    const [header = '', payload = '', signature = ''] = token.split('.')
    await verify(token)
    await expectRefused(`${header}.${part({ ...good(), sub: 'root' })}.${signature}`)
    await expectRefused(`${header}.${payload}.${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`)
    for (const text of ['', '.', '..', 'a.b.c', header, `${header}.${payload}`, `${token}.x`, '{}']) await expectRefused(text)
  })

  test('without quoting it in the answer', async () => {
    const token = await sign({ ...good(), iss: 'https://evil.test' })
    const { message } = (await verify(token).catch((thrown: unknown) => thrown)) as Error
    for (const word of [...token.split('.'), 'evil']) expect(message).not.toContain(word)
  })

  test('of Mooring’s own issuer with a role but no namespace, or with an unknown role', async () => {
    await expectRefused(await own.sign({ subject: 'x', role: 'admin', ttlSeconds: 60 }))
    await expectRefused(await own.sign({ subject: 'x', role: 'root' as never, namespace: 'acme/prod', ttlSeconds: 60 }))
  })
})

test.each(['system', 'mooring', 'Corp', 'a:b', ''])('an issuer may not be called "%s"', (name) => {
  expect(() => createJwtVerifier({ issuers: [{ name, issuer: CORP, keys: { jwks: { keys: [] } } }] })).toThrow()
})

test('the issuer publishes only its public key', () => {
  expect(JSON.stringify(own.jwks)).not.toContain('"d"')
  expect(own.discovery).toMatchObject({ issuer: OWN, jwks_uri: `${OWN}/.well-known/jwks.json` })
})
