import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { duplexPair } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { promisify } from 'node:util'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { binaryHeader, lineFor, startBalancer } from '../support/edge/balancer.ts'
import { DOMAIN, startProxy, selfSigned } from '../support/edge/proxy-fixture.ts'
import { rawBackend, rawVisitor } from '../support/edge/raw-http.ts'
import { freshHostname, startBackend, startSshEdge } from '../support/edge/ssh-edge.ts'
import { SOON } from '../support/patience.ts'

const run = promisify(execFile)
const never = new AbortController().signal
/** Trusted balancers of these tests. Other addresses of this machine belong to ordinary visitors. */
const trusted = ['127.0.0.1', '203.0.113.99']
const NO_HEADER = Buffer.alloc(0)

const cleanup = new AsyncDisposableStack()
const context = selfSigned(DOMAIN)
const edge = cleanup.use(await startProxy({ trusted, contextFor: async () => context, limits: { sweepMs: 20 } }))
const backend = cleanup.use(
  await rawBackend((received, socket) => {
    if (received.endsWith('\r\n\r\n')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
  }),
)
afterAll(() => cleanup.disposeAsync())

function tunnel(config = {}) {
  const hostname = freshHostname()
  edge.serve(hostname, backend.port, config)
  return {
    host: `${hostname}.${DOMAIN}`,
    /** Returns the visitor's address of the tunnel's last request, as the backend and the journal have it. */
    seen: () => {
      const fields = backend.received.findLast((text) => text.includes(hostname)) ?? ''
      const forwardedFor = /^x-forwarded-for: (.*)\r$/im.exec(fields)?.[1]
      return { forwardedFor, sourceIp: edge.records.findLast(({ tunnel: id }) => id === `uid-${hostname}`)?.sourceIp }
    },
  }
}

const request = (host: string, fields = '') => `GET / HTTP/1.1\r\nHost: ${host}\r\n${fields}Connection: close\r\n\r\n`

/** Runs the machine's curl from an address of this machine. Resolves with its output. */
async function curl(from: string, args: readonly string[]): Promise<string> {
  const { stdout } = await run('curl', [
    '-sS',
    '-k',
    '--max-time',
    String(SOON.timeout / 1_000),
    '--interface',
    from,
    '-w',
    ' %{http_code} %{http_version}',
    ...args,
  ])
  return stdout
}

interface Case {
  readonly does: string
  /** PROXY protocol header of the balancer. */
  readonly header: Buffer
  /** Header fields of the visitor's request. */
  readonly fields: string
  /** X-Forwarded-For at the backend. */
  readonly chain: string
  /** Source address in the journal; default: `chain`. */
  readonly source?: string
}

describe('a visitor behind a balancer', () => {
  test.each([
    { how: 'HTTP', scheme: 'http', args: ['--http1.1'], version: '1.1' },
    { how: 'HTTPS', scheme: 'https', args: ['--http1.1'], version: '1.1' },
    { how: 'HTTP/2', scheme: 'https', args: ['--http2'], version: '2' },
  ])('over $how has the address in the PROXY header of curl', async ({ scheme, args, version }) => {
    const { host, seen } = tunnel({ ingressIPWhitelist: ['127.0.0.5'] })
    const port = scheme === 'http' ? edge.httpPort : edge.httpsPort
    await using balancer = await startBalancer(port, NO_HEADER)
    const url = [`${scheme}://${host}:${balancer.port}/`, '--resolve', `${host}:${balancer.port}:127.0.0.1`]
    expect(await curl('127.0.0.5', [...args, '--haproxy-protocol', ...url])).toBe(`ok 200 ${version}`)
    expect(seen()).toEqual({ forwardedFor: '127.0.0.5', sourceIp: '127.0.0.5' })
    expect(await curl('127.0.0.6', [...args, '--haproxy-protocol', ...url])).toContain(` 403 ${version}`)
    expect(seen().sourceIp).toBe('127.0.0.6')
    // Without a PROXY header the source is the balancer's own address, which is not on the list.
    expect(await curl('127.0.0.5', [...args, ...url])).toContain(` 403 ${version}`)
    expect(seen().sourceIp).toBe('127.0.0.1')
  })

  const cases: readonly Case[] = [
    {
      does: 'without X-Forwarded-For has the address of the PROXY header',
      header: lineFor('203.0.113.7', 4000),
      fields: '',
      chain: '203.0.113.7',
    },
    {
      does: 'cannot forge its address with X-Forwarded-For',
      header: binaryHeader(),
      fields: 'X-Forwarded-For: 9.9.9.9\r\n',
      chain: '203.0.113.7',
    },
    {
      does: 'has its IPv6 address from the PROXY header',
      header: lineFor('2001:db8::7', 4000),
      fields: '',
      chain: '2001:db8::7',
    },
    {
      does: 'behind two trusted balancers has the address that the first one sent in X-Forwarded-For',
      header: lineFor('203.0.113.99', 4000),
      fields: 'X-Forwarded-For: 203.0.113.8\r\n',
      ...{ chain: '203.0.113.8, 203.0.113.99', source: '203.0.113.8' },
    },
    {
      does: 'behind a balancer without PROXY header has the address of its X-Forwarded-For',
      header: NO_HEADER,
      fields: 'X-Forwarded-For: 203.0.113.8\r\n',
      ...{ chain: '203.0.113.8, 127.0.0.1', source: '203.0.113.8' },
    },
    {
      does: 'has the balancer’s address after a LOCAL header',
      header: binaryHeader({ command: 0 }),
      fields: '',
      chain: '127.0.0.1',
    },
  ]
  test.each(cases)('$does', async ({ header, fields, chain, source = chain }) => {
    const { host, seen } = tunnel()
    await using balancer = await startBalancer(edge.httpPort, header)
    expect(await rawVisitor(balancer.port, request(host, fields)).over).toContain('200 OK')
    expect(seen()).toEqual({ forwardedFor: chain, sourceIp: source })
  })
})

const header = lineFor('203.0.113.7', 4000)

test.each([1, header.length - 1, header.length, header.length + 1, header.length + 5, header.length + 100])(
  'the edge completes a TLS handshake when header and handshake are split after byte %i',
  async (split) => {
    const { host, seen } = tunnel()
    const [near, far] = duplexPair()
    const visitor = connectTls({ socket: near, servername: host, rejectUnauthorized: false })
    const [hello] = (await once(far, 'data')) as [Buffer]
    far.pause()
    const bytes = Buffer.concat([header, hello])
    const socket = connect({ port: edge.httpsPort, host: '127.0.0.1', noDelay: true })
    await once(socket, 'connect')
    // The edge may reset the connection once it has responded.
    socket.on('error', () => socket.destroy())
    socket.write(bytes.subarray(0, split))
    // Gives the edge a chance to read the first part alone.
    await setImmediate()
    socket.write(bytes.subarray(split))
    far.pipe(socket).pipe(far)
    visitor.write(request(host))
    expect(await text(visitor)).toMatch(/200 OK[^]*ok$/)
    expect(seen()).toEqual({ forwardedFor: '203.0.113.7', sourceIp: '203.0.113.7' })
    socket.destroy()
  },
)

test('the edge rejects a PROXY header from an untrusted address', async () => {
  await using plain = await startBalancer(edge.httpPort, lineFor('203.0.113.7', 4000), '127.0.0.2')
  expect(await rawVisitor(plain.port, request('a.test')).over).toContain('HTTP/1.1 400')
  await using secured = await startBalancer(edge.httpsPort, lineFor('203.0.113.7', 4000), '127.0.0.2')
  await expect(curl('127.0.0.1', [`https://127.0.0.1:${secured.port}/`])).rejects.toThrow(/curl/)
})

test('the edge rejects a second PROXY header of a trusted balancer', async () => {
  await using balancer = await startBalancer(edge.httpPort, lineFor('203.0.113.7', 4000))
  expect(await rawVisitor(balancer.port, `PROXY TCP4 203.0.113.8 127.0.0.1 1 1\r\n${request('a.test')}`).over).toContain(
    'HTTP/1.1 400',
  )
})

describe('an SSH client behind a balancer', async () => {
  const echo = cleanup.use(await startBackend((socket) => socket.pipe(socket)))
  const ssh = cleanup.use(await startSshEdge({}, trusted))
  const recordOf = (hostname: string) => ssh.records.find(({ tunnel: id }) => id === `uid-${hostname}`)
  const login = (hostname: string, via: number) =>
    ssh.ssh({ user: hostname, via, args: ['-N', '-R', `${hostname}:80:127.0.0.1:${echo.port}`] })

  test.each([
    { header: lineFor('203.0.113.7', 4000), address: '203.0.113.7' },
    { header: binaryHeader(), address: '203.0.113.7' },
    { header: binaryHeader({ command: 0 }), address: '127.0.0.1' },
    { header: NO_HEADER, address: '127.0.0.1' },
  ])('has the address $address', async ({ header, address }) => {
    const hostname = freshHostname()
    ssh.routes.set(hostname, { authorizedKeys: [ssh.publicKey], sshIPWhitelist: [address] })
    await using balancer = await startBalancer(ssh.port, header)
    const client = login(hostname, balancer.port)
    const session = await ssh.sessions.waitFor(hostname, SOON.timeout, never)
    expect(session, client.output.text).toMatchObject({ clientIp: address })
    expect(recordOf(hostname)).toMatchObject({ type: 'connect', clientIp: address })
  })

  test('is rejected and rate-limited by its own address', async () => {
    await using own = await startSshEdge({ failedPerSource: 1 }, trusted)
    const hostname = freshHostname()
    own.routes.set(hostname, { authorizedKeys: [own.publicKey], sshIPWhitelist: ['203.0.113.7', '127.0.0.1'] })
    await using denied = await startBalancer(own.port, lineFor('203.0.113.8', 4000))
    const tryFrom = (via: number, password?: string) =>
      own.ssh({ user: hostname, via, args: ['-N', '-R', `80:127.0.0.1:${echo.port}`], ...(password && { password }) })
    expect(await tryFrom(denied.port).exited).toBe(255)
    expect(own.records).toMatchObject([{ type: 'refused', reason: 'ip_denied', clientIp: '203.0.113.8' }])
    const again = tryFrom(denied.port, 'mt_guess')
    expect(await again.exited).toBe(255)
    expect(again.output.text).toContain('too many failed logins from your address')
    await using other = await startBalancer(own.port, lineFor('203.0.113.7', 4000))
    tryFrom(other.port)
    expect(await own.sessions.waitFor(hostname, SOON.timeout, never)).toMatchObject({ clientIp: '203.0.113.7' })
  })

  test('receives the edge’s identification without sending first', async () => {
    await using own = await startSshEdge({ balancerQuietMs: 20 }, trusted)
    const client = rawVisitor(own.port)
    await client.sees('SSH-2.0-')
    client.socket.destroy()
  })

  test('is disconnected when the edge closes before the PROXY header is complete', async () => {
    const own = await startSshEdge({}, trusted)
    const client = rawVisitor(own.port, 'PROXY TCP4 ')
    await vi.waitFor(() => expect(client.socket.bytesWritten).toBeGreaterThan(0), SOON)
    await own[Symbol.asyncDispose]()
    expect(await client.over).toBe('')
  })

  test('from an untrusted address is rejected with a PROXY header', async () => {
    await using balancer = await startBalancer(ssh.port, lineFor('203.0.113.7', 4000), '127.0.0.2')
    const hostname = freshHostname()
    ssh.routes.set(hostname, { authorizedKeys: [ssh.publicKey] })
    expect(await login(hostname, balancer.port).exited).toBe(255)
    expect(recordOf(hostname)).toBeUndefined()
  })
})
