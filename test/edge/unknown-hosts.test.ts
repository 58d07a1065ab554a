import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { connect, type ConnectionOptions, createSecureContext } from 'node:tls'
import { afterAll, expect, test } from 'vitest'
import { createCa, issueCertificate } from '../../operator/certificates/local-ca.ts'
import { DOMAIN, startProxy } from '../support/edge/proxy-fixture.ts'

/** Visitors whose SNI is not the host of a tunnel. */

const KNOWN = '0000000000000001'
const UNKNOWN = '0000000000000002'

const now = new Date()
const ca = await createCa(now)
const own = await issueCertificate({ ca, names: [`${KNOWN}.${DOMAIN}`], now })
let pair = await issueCertificate({ ca, names: [`*.${DOMAIN}`], now })
let renewed: () => void = () => undefined

const contextFor = async (name: string) =>
  name === `${KNOWN}.${DOMAIN}` ? createSecureContext({ cert: own.certificate, key: own.key }) : undefined
const edge = await startProxy({
  contextFor,
  limits: { holdMs: 50 },
  unknownHosts: { current: () => pair, onRenew: (handler) => (renewed = handler) },
})
edge.serve(KNOWN, undefined)
const bare = await startProxy({ contextFor })
afterAll(async () => {
  await edge.proxy.close()
  await bare.proxy.close()
})

async function handshake(options: ConnectionOptions, port = edge.httpsPort) {
  const socket = connect({ host: '127.0.0.1', port, ca: ca.certificate, ALPNProtocols: ['http/1.1'], ...options })
  await once(socket, 'secureConnect')
  return socket
}

/** Sends a request for `hostname`. @returns the status and `Mooring-Error` of the response */
async function ask(hostname: string, options: ConnectionOptions) {
  const socket = await handshake(options)
  socket.write(`GET / HTTP/1.1\r\nHost: ${hostname}.${DOMAIN}\r\nConnection: close\r\n\r\n`)
  const answer = await text(socket)
  return [Number(answer.split(' ')[1]), /^mooring-error: (.*)$/im.exec(answer)?.[1]]
}

test.each([
  { visitor: 'an unknown host in SNI and Host', names: UNKNOWN, asks: UNKNOWN, answer: [404, 'unknown_host'] },
  { visitor: 'an unknown host in SNI and a tunnel in Host', names: UNKNOWN, asks: KNOWN, answer: [421, 'misdirected'] },
  { visitor: 'a tunnel in SNI and Host', names: KNOWN, asks: KNOWN, answer: [503, 'tunnel_offline'] },
])('a visitor with $visitor gets $answer', async ({ names, asks, answer }) => {
  expect(await ask(asks, { servername: `${names}.${DOMAIN}` })).toEqual(answer)
})

test('a visitor without SNI gets 421', async () => {
  expect(await ask(KNOWN, { checkServerIdentity: () => undefined })).toEqual([421, 'misdirected'])
})

test('the edge serves a tunnel’s own certificate', async () => {
  const socket = await handshake({ servername: `${KNOWN}.${DOMAIN}` })
  expect(socket.getPeerCertificate().subjectaltname).toBe(`DNS:${KNOWN}.${DOMAIN}`)
  socket.destroy()
})

test('the edge serves a renewed certificate for unknown hosts', async () => {
  const serialOf = async () => {
    const socket = await handshake({ servername: `${UNKNOWN}.${DOMAIN}` })
    const { serialNumber } = socket.getPeerCertificate()
    socket.destroy()
    return serialNumber
  }
  const before = await serialOf()
  pair = await issueCertificate({ ca, names: [`*.${DOMAIN}`], now })
  renewed()
  expect(await serialOf()).not.toBe(before)
})

test('the edge rejects handshakes of unknown hosts when it has no certificate for them', async () => {
  await expect(handshake({ servername: `${UNKNOWN}.${DOMAIN}` }, bare.httpsPort)).rejects.toThrow()
})
