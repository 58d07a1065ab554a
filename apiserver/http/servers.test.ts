import { once } from 'node:events'
import { get } from 'node:http'
import { request } from 'node:https'
import { type AddressInfo, createConnection, createServer } from 'node:net'
import { text } from 'node:stream/consumers'
import { connect } from 'node:tls'
import type { RequestListener } from 'node:http'
import { beforeAll, expect, test } from 'vitest'
import { createCa, issueCertificate, type KeyPair } from '../../operator/certificates/local-ca.ts'
import { startServers } from './servers.ts'

let ca: KeyPair
let certificate: KeyPair
const issue = () => issueCertificate({ ca, names: ['127.0.0.1'], now: new Date() })

beforeAll(async () => {
  ca = await createCa(new Date())
  certificate = await issue()
})

const hello: RequestListener = (_req, res) => {
  res.end('hello')
}
const port = (number: number, flag: string) => ({ port: number, flag })

function start(app: RequestListener = hello, sharedPort = 0) {
  return startServers({
    host: '127.0.0.1',
    certificate: () => certificate,
    publicNames: ['mooring.example'],
    listeners: {
      shared: { app, https: port(sharedPort, '--shared-port'), http: port(0, '--shared-http-port') },
      dedicated: { app, https: port(0, '--dedicated-port') },
    },
  })
}

function getByHttps(at: AddressInfo): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port: at.port, ca: ca.certificate, agent: false }, (res) => {
      res.resume()
      res.on('end', () => resolve(res.statusCode))
    })
    sent.on('error', reject)
    sent.end()
  })
}

async function serialOf(at: AddressInfo): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port: at.port, ca: ca.certificate })
  await once(socket, 'secureConnect')
  const { serialNumber } = socket.getPeerCertificate()
  socket.destroy()
  return serialNumber
}

test('startServers serves both listeners by HTTPS, and by plain HTTP on loopback if configured', async () => {
  const servers = await start()
  const { shared, dedicated } = servers.addresses
  expect(await getByHttps(shared.https)).toBe(200)
  expect(await getByHttps(dedicated.https)).toBe(200)
  expect(shared.http?.address).toBe('127.0.0.1')
  expect(await (await fetch(`http://127.0.0.1:${shared.http?.port ?? 0}/`)).text()).toBe('hello')
  expect(dedicated.http).toBeUndefined()
  await servers.close()
})

test('plain HTTP on an HTTPS port gets a 400 that names https://, and its connection ends', async () => {
  const servers = await start()
  const { port } = servers.addresses.shared.https
  for (const request of ['GET / HTTP/1.1\r\nHost: x\r\n\r\n', 'POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n']) {
    const socket = createConnection({ port, host: '127.0.0.1' })
    socket.write(request)
    const answer = await text(socket)
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/)
    expect(answer).toMatch(/"code":"invalid_request"/)
    expect(answer).toContain('use https:// instead of http://')
  }
  const noise = createConnection({ port, host: '127.0.0.1' })
  noise.write('no protocol at all')
  expect(await text(noise)).not.toContain('HTTP')
  expect(await getByHttps(servers.addresses.shared.https)).toBe(200)
  await servers.close()
})

test('new connections get a renewed certificate', async () => {
  const servers = await start()
  const { https } = servers.addresses.shared
  const before = await serialOf(https)
  certificate = await issue()
  expect(await serialOf(https)).toBe(before)
  servers.renewCertificate()
  expect(await serialOf(https)).not.toBe(before)
  await servers.close()
})

test('a taken port is an error that names its flag, and leaves no server listening', async () => {
  const taken = createServer()
  await once(taken.listen(0, '127.0.0.1'), 'listening')
  const { port: number } = taken.address() as AddressInfo
  await expect(start(hello, number)).rejects.toMatchObject({
    code: 'port_in_use',
    message: `port ${number} on 127.0.0.1 is in use: choose another with --shared-port`,
  })
  taken.close()
  await once(taken, 'close')
})

test('close lets a request in flight finish and accepts no new one', async () => {
  const arrived = Promise.withResolvers<undefined>()
  const release = Promise.withResolvers<undefined>()
  const servers = await start((_req, res) => {
    arrived.resolve(undefined)
    void release.promise.then(() => res.end('done'))
  })
  const answer = getByHttps(servers.addresses.shared.https)
  await arrived.promise
  const closed = servers.close(20_000)
  await expect(getByHttps(servers.addresses.dedicated.https)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  release.resolve(undefined)
  expect(await answer).toBe(200)
  await closed
})

test('close ends a request that does not finish by the deadline', async () => {
  const arrived = Promise.withResolvers<undefined>()
  const servers = await start(() => {
    arrived.resolve(undefined)
  })
  const answer = getByHttps(servers.addresses.shared.https)
  const ended = expect(answer).rejects.toMatchObject({ code: 'ECONNRESET' })
  await arrived.promise
  await servers.close(1)
  await ended
})

test('close ends event streams at once', async () => {
  const servers = await start((_req, res) => {
    res.setHeader('Content-Type', 'text/event-stream; charset=utf-8')
    res.write(':\n\n')
  })
  const { port: number = 0 } = servers.addresses.shared.http ?? {}
  const stream = await fetch(`http://127.0.0.1:${number}/`)
  const text = stream.text()
  await servers.close(60_000)
  expect(await text).toBe(':\n\n')
})

const REFUSED = [
  { does: 'HTTP/1.1 without Host', request: 'GET / HTTP/1.1\r\n\r\n', status: 400, code: 'invalid_request' },
  {
    does: 'an expectation that it does not know',
    request: 'GET / HTTP/1.1\r\nHost: x\r\nExpect: foo\r\n\r\n',
    ...{ status: 417, code: 'invalid_request' },
  },
  { does: 'CONNECT', request: 'CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n', status: 405, code: 'method_not_allowed' },
]
test.each(REFUSED)(
  '$does is answered in JSON, with the caller’s request id, and the connection closes',
  async ({ request, status, code }) => {
    const servers = await start()
    const { port: number = 0 } = servers.addresses.shared.http ?? {}
    const socket = createConnection({ port: number, host: '127.0.0.1', allowHalfOpen: true })
    socket.write(request.replace(/\r\n\r\n$/, '\r\nX-Request-Id: mine\r\n\r\n'))
    const answer = await text(socket)
    socket.destroy()
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(answer).toMatch(/\r\nX-Request-Id: mine\r\n/)
    expect(answer.includes('\r\nAllow: ')).toBe(status === 405)
    const body = JSON.parse(answer.split('\r\n\r\n')[1] ?? '') as unknown
    expect(body).toEqual({ msg: expect.any(String) as string, error: { code, details: [], requestId: 'mine' } })
    await servers.close()
  },
)

test('HTTP/1.0 needs no Host, and 100-continue is supported', async () => {
  const servers = await start()
  const { port: number = 0 } = servers.addresses.shared.http ?? {}
  for (const request of [
    'GET / HTTP/1.0\r\n\r\n',
    'GET / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n',
  ]) {
    const socket = createConnection(number, '127.0.0.1')
    socket.write(request)
    expect(await text(socket)).toMatch(/HTTP\/1\.1 200 /)
  }
  await servers.close()
})

test('close does not wait for an idle keep-alive connection', async () => {
  const servers = await start()
  const { port: number = 0 } = servers.addresses.shared.http ?? {}
  const response = await fetch(`http://127.0.0.1:${number}/`, { headers: { connection: 'keep-alive' } })
  await response.text()
  await servers.close(60_000)
})

test('close ends a connection without a TLS handshake by the deadline', async () => {
  const servers = await start()
  const silent = createConnection(servers.addresses.shared.https.port, '127.0.0.1')
  await once(silent, 'connect')
  await getByHttps(servers.addresses.shared.https)

  await servers.close(1)

  await once(silent, 'close')
})

test.each([
  { host: 'localhost:8080', status: 200 },
  { host: '[::1]:8080', status: 200 },
  { host: 'mooring.example', status: 200 },
  { host: 'evil.example', status: 421 },
  { host: 'tenant.tunnel.localhost', status: 421 },
])('plain HTTP on loopback answers Host $host with $status', async ({ host, status }) => {
  const servers = await start()
  const port = servers.addresses.shared.http?.port
  const answer = await new Promise<{ status: number | undefined; body: string }>((resolve, reject) => {
    get({ host: '127.0.0.1', port, headers: { host } }, (res) => {
      text(res).then((body) => resolve({ status: res.statusCode, body }), reject)
    }).on('error', reject)
  })
  expect(answer.status).toBe(status)
  if (status === 421)
    expect(JSON.parse(answer.body)).toMatchObject({
      msg: `${host} is not a name of this listener, which serves only this machine: use localhost, 127.0.0.1 or [::1]`,
      error: { code: 'invalid_request' },
    })
  await servers.close(0)
})
