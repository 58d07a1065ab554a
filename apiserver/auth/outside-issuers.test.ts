import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { generateIssuerKey } from '../../operator/installation/issuer-key.ts'
import { createIssuer } from './issuer.ts'
import { createJwtVerifier } from './jwt.ts'
import { createOutsideIssuers } from './outside-issuers.ts'

const log = pino({ level: 'silent' })
const claims = { subject: 'alice', ttlSeconds: 60 }

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
