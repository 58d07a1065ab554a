import { once } from 'node:events'
import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { pino } from 'pino'
import { createCa, issueCertificate } from '../../operator/certificates/local-ca.ts'
import { generateIssuerKey } from '../../operator/installation/api-secret.ts'
import { createIssuer, type TokenIssuer } from './issuer.ts'
import { createJwtVerifier } from './jwt.ts'
import { createOutsideIssuers } from './trusted-issuers.ts'

const ISSUER = 'https://login.corp.test'

/** Starts an issuer's web server over plain HTTP on loopback; the test can change its `state` while it runs. */
async function startJwksServer(issuer: TokenIssuer) {
  const state = { status: 200, body: JSON.stringify(issuer.jwks), requests: 0 }
  const server = createServer((_req, res) => {
    state.requests++
    res.writeHead(state.status, { 'content-type': 'application/json', location: '/elsewhere' }).end(state.body)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json`)
  const dispose = async () => {
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  }
  return { url, state, [Symbol.asyncDispose]: dispose }
}

const newIssuer = async () => createIssuer({ privateKey: await generateIssuerKey(), issuer: ISSUER })
const claims = { subject: 'alice', ttlSeconds: 60 }

describe('a published key set', () => {
  test('is fetched once for many tokens', async () => {
    const issuer = await newIssuer()
    await using server = await startJwksServer(issuer)
    const verify = createJwtVerifier({ issuers: [{ name: 'corp', issuer: ISSUER, keys: { url: server.url } }] })
    const tokens = await Promise.all(['a', 'b', 'c'].map((subject) => issuer.sign({ ...claims, subject })))
    expect(await Promise.all(tokens.map(verify))).toMatchObject([{ user: 'corp:a' }, { user: 'corp:b' }, { user: 'corp:c' }])
    expect(server.state.requests).toBe(1)
  })

  test('is not fetched again for each unknown key', async () => {
    const [issuer, forger] = [await newIssuer(), await newIssuer()]
    await using server = await startJwksServer(issuer)
    const verify = createJwtVerifier({ issuers: [{ name: 'corp', issuer: ISSUER, keys: { url: server.url } }] })
    await verify(await issuer.sign(claims))
    for (let at = 0; at < 5; at++) {
      await expect(verify(await forger.sign({ ...claims, subject: String(at) }))).rejects.toMatchObject({ status: 401 })
    }
    expect(server.state.requests).toBe(1)
  })

  test.each([
    { when: 'answers with an error', status: 500, body: '{}' },
    { when: 'redirects', status: 302, body: '{}' },
    { when: 'answers with something else', status: 200, body: '<html>' },
    { when: 'answers endlessly', status: 200, body: ' '.repeat(2_000_000) },
  ])('is unavailable while its server $when: that is not the caller’s fault', async ({ status, body }) => {
    const issuer = await newIssuer()
    await using server = await startJwksServer(issuer)
    Object.assign(server.state, { status, body })
    const verify = createJwtVerifier({ issuers: [{ name: 'corp', issuer: ISSUER, keys: { url: server.url } }] })
    await expect(verify(await issuer.sign(claims))).rejects.toMatchObject({ code: 'unavailable', status: 503 })
    const { requests } = server.state
    await expect(verify(await issuer.sign(claims))).rejects.toMatchObject({ status: 503 })
    expect(server.state.requests).toBe(requests)
  })

  test('is unavailable when its server’s certificate is not trusted or no server listens', async () => {
    const issuer = await newIssuer()
    const now = new Date()
    const { certificate: cert, key } = await issueCertificate({ ca: await createCa(now), names: ['127.0.0.1'], now })
    await using server = createTlsServer({ cert, key }, (_req, res) => res.end(JSON.stringify(issuer.jwks)))
    await once(server.listen(0, '127.0.0.1'), 'listening')
    for (const port of [(server.address() as AddressInfo).port, 1]) {
      const keys = { url: new URL(`https://127.0.0.1:${port}/jwks.json`) }
      const verify = createJwtVerifier({ issuers: [{ name: 'corp', issuer: ISSUER, keys }] })
      await expect(verify(await issuer.sign(claims))).rejects.toMatchObject({ status: 503 })
    }
  })
})

const log = pino({ level: 'silent' })
/** Creates an identity provider that answers only while it is up. */
async function startProvider() {
  const state = { up: true, calledItself: undefined as string | undefined, discoveries: 0 }
  const server = createServer((req, res) => {
    if (!state.up) {
      res.writeHead(503).end()
    } else if (req.url === '/.well-known/openid-configuration') {
      state.discoveries += 1
      res.end(JSON.stringify({ issuer: state.calledItself ?? url, jwks_uri: `${url}/keys` }))
    } else {
      res.end(JSON.stringify(issuer.jwks))
    }
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const issuer = await createIssuer({ privateKey: await generateIssuerKey(), issuer: url })
  const dispose = async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  return { url, issuer, state, [Symbol.asyncDispose]: dispose }
}

test('an issuer is discovered once, at the start', async () => {
  await using provider = await startProvider()
  const verify = createJwtVerifier({ issuers: createOutsideIssuers({ issuers: [{ name: 'corp', url: provider.url }], log }) })
  const tokens = await Promise.all(['a', 'b'].map((subject) => provider.issuer.sign({ ...claims, subject })))
  expect(await Promise.all(tokens.map(verify))).toMatchObject([{ user: 'corp:a' }, { user: 'corp:b' }])
  expect(provider.state.discoveries).toBe(1)
})

test('an issuer that is down at the start affects only its own tokens, and is discovered when it is back', async () => {
  await using provider = await startProvider()
  await using other = await startProvider()
  provider.state.up = false
  let now = 0
  const issuers = [
    { name: 'corp', url: provider.url },
    { name: 'else', url: other.url },
  ]
  const verify = createJwtVerifier({ issuers: createOutsideIssuers({ issuers, log, now: () => now }) })
  const token = await provider.issuer.sign(claims)
  await expect(verify(token)).rejects.toMatchObject({ code: 'unavailable' })
  expect(await verify(await other.issuer.sign(claims))).toMatchObject({ user: 'else:alice' })

  provider.state.up = true
  // Tokens that arrive during the cooldown cause no request.
  await expect(verify(token)).rejects.toMatchObject({ code: 'unavailable' })
  expect(provider.state.discoveries).toBe(0)
  now += 5_000
  expect(await verify(token)).toMatchObject({ user: 'corp:alice' })
})

test('a document that names another issuer is rejected', async () => {
  await using provider = await startProvider()
  provider.state.calledItself = 'https://other.test'
  const verify = createJwtVerifier({ issuers: createOutsideIssuers({ issuers: [{ name: 'corp', url: provider.url }], log }) })
  await expect(verify(await provider.issuer.sign(claims))).rejects.toMatchObject({ code: 'unavailable' })
})
