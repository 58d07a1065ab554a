import { once } from 'node:events'
import { connect, createSecureContext, type SecureVersion } from 'node:tls'
import { expect, test } from 'vitest'
import { createCa, issueCertificate } from '../../../operator/certificates/local-ca.ts'
import { checkTlsAlpn } from '../../../operator/acme/tls-alpn-check.ts'
import { isValidation } from '../../../shared/tls-alpn.ts'
import { DOMAIN, startProxy } from '../../support/edge/proxy-fixture.ts'
import { closeOf } from '../../support/edge/raw-http.ts'

const HOST = `0123456789abcdef.${DOMAIN}`
const OTHER = `fedcba9876543210.${DOMAIN}`
const AUTHORIZATION = 'token.thumbprint'

async function setUp() {
  const state: { authorization: string | undefined } = { authorization: AUTHORIZATION }
  const { certificate, key } = await issueCertificate({ ca: await createCa(new Date()), names: [`*.${DOMAIN}`], now: new Date() })
  const context = createSecureContext({ cert: certificate, key })
  const tlsChallenge = (name: string) => (name === HOST ? state.authorization : undefined)
  const started = await startProxy({ contextFor: async () => context, tlsChallenge })
  const handshake = async (servername: string, ALPNProtocols: string[], version: SecureVersion = 'TLSv1.3') => {
    const about = { servername, ALPNProtocols, minVersion: version, maxVersion: version, rejectUnauthorized: false }
    const socket = connect({ port: started.httpsPort, host: '127.0.0.1', ...about })
    await once(socket, 'secureConnect')
    // The edge may reset a connection that is not used any more.
    socket.on('error', () => undefined)
    return { socket, protocol: socket.alpnProtocol, der: socket.getPeerCertificate().raw }
  }
  return { ...started, state, handshake }
}

test.each<SecureVersion>(['TLSv1.3', 'TLSv1.2'])(
  'a handshake of the challenge gets its certificate by %s, then its end',
  async (version) => {
    await using at = await setUp()
    for (let times = 0; times < 2; times += 1) {
      const { socket, protocol, der } = await at.handshake(HOST, ['acme-tls/1'], version)
      expect([protocol, await isValidation(der, HOST, AUTHORIZATION)]).toEqual(['acme-tls/1', true])
      expect(await isValidation(der, HOST, 'other.thumbprint')).toBe(false)
      socket.resume()
      if (!socket.closed) await closeOf(socket)
    }
  },
)

test.each([['h2'], ['http/1.1'], ['http/1.0'], ['http/1.1', 'h2']])(
  'other protocols of the same host are unaffected: %s %s',
  async (...all) => {
    await using at = await setUp()
    await at.handshake(HOST, ['acme-tls/1'])
    const { socket, protocol, der } = await at.handshake(HOST, all)
    expect([protocol, await isValidation(der, HOST, AUTHORIZATION)]).toEqual([all.at(-1), false])
    socket.destroy()
  },
)

test('the protocol is rejected for a host without an order, after the order, and where no protocol is known', async () => {
  await using at = await setUp()
  await expect(at.handshake(OTHER, ['acme-tls/1'])).rejects.toThrow(/no application protocol/)
  await expect(at.handshake(HOST, ['spdy/3'])).rejects.toThrow(/no application protocol/)
  at.state.authorization = undefined
  await expect(at.handshake(HOST, ['acme-tls/1'])).rejects.toThrow(/no application protocol/)
})

test('the check of the operator distinguishes the edge, a late edge and a closed port', async () => {
  await using at = await setUp()
  const target = { address: '127.0.0.1', port: at.httpsPort }
  const checked = { identifier: HOST, keyAuthorization: AUTHORIZATION }
  expect(await checkTlsAlpn(checked, target)).toBeUndefined()
  expect(await checkTlsAlpn({ ...checked, keyAuthorization: 'b.c' }, target)).toMatchObject({ early: true })
  expect(await checkTlsAlpn({ ...checked, identifier: OTHER }, target)).toMatchObject({ early: true })
  const closed = await checkTlsAlpn(checked, { address: '127.0.0.1', port: 1 })
  expect(closed).toMatchObject({ early: false })
  expect(closed?.message).toMatch(/fails \(ECONNREFUSED\): open port 1 and forward it to the edges$/)
})
