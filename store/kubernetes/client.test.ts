import { once } from 'node:events'
import { constants, createSecureServer, type Http2SecureServer, type ServerHttp2Stream } from 'node:http2'
import type { RequestOptions } from 'node:https'
import { type AddressInfo, createServer } from 'node:net'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { createCa, issueCertificate, type KeyPair } from '../../operator/certificates/local-ca.ts'
import { createKubernetesClient, type KubernetesClient, type KubernetesClientDeps } from './client.ts'

let ca: KeyPair
let pair: KeyPair
beforeAll(async () => {
  ca = await createCa(new Date())
  pair = await issueCertificate({ ca, names: ['127.0.0.1'], now: new Date() })
})
const cleanup: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of cleanup.splice(0)) await end()
})

type Act = (stream: ServerHttp2Stream, headers: Readonly<Record<string, unknown>>) => void
const answer =
  (status: number, more: object = {}): Act =>
  (stream) => {
    stream.respond({ ':status': status, ...more })
    stream.end('{}')
  }
const reset =
  (code: number): Act =>
  (stream) => {
    stream.close(code)
  }
const silence: Act = () => undefined

interface Served {
  readonly client: KubernetesClient
  readonly server: Http2SecureServer
  /** Method and token of each received request: `GET token`. */
  readonly arrived: string[]
  readonly connections: () => number
}

function clientOf(port: number, deps: Partial<KubernetesClientDeps> = {}): KubernetesClient {
  let reads = 0
  const config: KubernetesClientDeps['config'] = {
    getCurrentCluster: () => ({ name: 'test', server: `https://127.0.0.1:${port}/base/`, skipTLSVerify: false }),
    async applyToHTTPSOptions(options: RequestOptions) {
      reads += 1
      options.ca = ca.certificate
      options.headers = { Authorization: `token ${reads}\n` }
    },
  }
  const client = createKubernetesClient({ config, ...deps })
  cleanup.push(() => client.close())
  return client
}

/** Server that performs one act per request in turn, and repeats the last one. */
async function serve(acts: Act[], deps: Partial<KubernetesClientDeps> = {}): Promise<Served> {
  const server = createSecureServer({ cert: pair.certificate, key: pair.key })
  const arrived: string[] = []
  let connections = 0
  server.on('session', () => (connections += 1))
  server.on('stream', (stream, headers) => {
    arrived.push(`${headers[':method'] ?? ''} ${headers.authorization ?? ''}`)
    stream.on('error', silence)
    ;(acts.length > 1 ? acts.shift() : acts[0])?.(stream, headers)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = clientOf((server.address() as AddressInfo).port, deps)
  cleanup.push(async () => {
    server.close()
  })
  return { client, server, arrived, connections: () => connections }
}

const get = { method: 'GET', path: '/x' } as const
const post = { method: 'POST', path: '/x', body: { a: 1 } } as const

test('a request may have a shorter timeout than the client', async () => {
  const { client, arrived } = await serve([answer(200), silence])
  // Connects first: connecting would take part of the timeout.
  await client.request(get)
  await expect(client.request({ ...post, timeoutMs: 300 })).rejects.toMatchObject({ code: 'unavailable' })
  expect(arrived).toHaveLength(2)
})

test('concurrent requests share one connection', async () => {
  const { client, connections } = await serve([answer(200)])
  const answers = await Promise.all(Array.from({ length: 50 }, () => client.request(get)))
  expect(answers.every(({ status, body }) => status === 200 && JSON.stringify(body) === '{}')).toBe(true)
  expect(connections()).toBe(1)
})

test('a request has its method, path below the server URL, query, body and credentials', async () => {
  const arrived = Promise.withResolvers<unknown[]>()
  const { client } = await serve([
    (stream, headers) => {
      stream.on('data', (body: Buffer) => {
        const names = [':method', ':path', 'content-type', 'authorization']
        arrived.resolve([...names.map((name) => headers[name]), body.toString()])
        answer(201)(stream, headers)
      })
    },
  ])
  expect((await client.request({ ...post, query: { a: 'b c', none: undefined } })).status).toBe(201)
  expect(await arrived.promise).toEqual(['POST', '/base/x?a=b+c', 'application/json', 'token 1', '{"a":1}'])
})

test.each([
  { what: 'too many requests', acts: [answer(429, { 'retry-after': '0' }), answer(201)], request: post, tries: 2, ends: 201 },
  {
    what: 'a refused stream',
    acts: [reset(constants.NGHTTP2_REFUSED_STREAM), answer(201)],
    request: post,
    tries: 2,
    ends: 201,
  },
  {
    what: 'a read whose response breaks off',
    acts: [reset(constants.NGHTTP2_INTERNAL_ERROR), answer(200)],
    request: get,
    tries: 2,
    ends: 200,
  },
  { what: 'a read with a server error', acts: [answer(503), answer(200)], request: get, tries: 2, ends: 200 },
  { what: 'a write with a server error', acts: [answer(503), answer(201)], request: post, tries: 1, ends: 503 },
  {
    what: 'a write whose response breaks off',
    acts: [reset(constants.NGHTTP2_CANCEL), answer(201)],
    request: post,
    tries: 1,
    ends: 'unavailable',
  },
])('$what is sent $tries times and ends with $ends', async ({ acts, request, tries, ends }) => {
  const { client, arrived } = await serve(acts)
  const outcome = await client.request(request).then(
    ({ status }) => status,
    (error: unknown) => (error as { code?: unknown }).code,
  )
  expect([arrived.length, outcome]).toEqual([tries, ends])
})

test('rejected credentials are read again', async () => {
  const { client, arrived } = await serve([answer(401), answer(200)])
  expect((await client.request(get)).status).toBe(200)
  // Once for the connection and the first request, and once after the rejection.
  expect(arrived).toEqual(['GET token 1', 'GET token 2'])
})

test('after GOAWAY, requests use a new connection, and streams of the old one continue', async () => {
  const served = await serve([
    (stream) => {
      stream.respond({ ':status': 200 })
      stream.write('first\n')
      stream.session?.goaway()
    },
    answer(200),
  ])
  const stop = new AbortController()
  const { stream } = await served.client.open(get, stop.signal)
  const [first] = (await once(stream, 'data')) as [Buffer]
  expect(first.toString()).toBe('first\n')
  await expect.poll(() => stream.session?.closed).toBe(true)
  expect((await served.client.request(get)).status).toBe(200)
  expect([stream.closed, served.connections()]).toEqual([false, 2])
  stop.abort()
})

test('a request without a response fails with unavailable after its timeout, and so does a watch', async () => {
  const { client } = await serve([silence], { timeoutMs: 100 })
  await expect(client.request(get)).rejects.toMatchObject({ code: 'unavailable' })
  await expect(client.open(get, new AbortController().signal)).rejects.toMatchObject({ code: 'unavailable' })
})

test('a server that accepts connections and sends no data is unavailable', async () => {
  const mute = createServer().listen(0, '127.0.0.1')
  await once(mute, 'listening')
  cleanup.push(async () => mute.close())
  const client = clientOf((mute.address() as AddressInfo).port, { timeoutMs: 300, connectMs: 100 })
  await expect(client.request(post)).rejects.toMatchObject({ code: 'unavailable' })
})

test('a request of a closed client fails with unavailable at once', async () => {
  const { client } = await serve([answer(200)])
  await client.request(get)
  await client.close()
  await expect(client.request(get)).rejects.toMatchObject({ code: 'unavailable' })
})

test.each(['', 'not a url', 'http://127.0.0.1:1'])('a server URL that is not https is rejected: "%s"', (server) => {
  const getCurrentCluster = () => ({ name: 'test', server, skipTLSVerify: false })
  const config = { getCurrentCluster, applyToHTTPSOptions: async () => undefined }
  expect(() => createKubernetesClient({ config })).toThrow(expect.objectContaining({ code: 'invalid_settings' }))
})
