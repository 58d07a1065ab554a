import type { Socket } from 'node:net'
import { afterAll, describe, expect, test } from 'vitest'
import { DOMAIN, startProxy, selfSigned, tunnelBefore } from '../../support/edge/proxy-fixture.ts'
import { curl, type Transport, TRANSPORTS } from '../../support/edge/visitor.ts'

/** Fields that a backend trusts from the edge, and fields that would affect other tunnels of the domain. */

const context = selfSigned(DOMAIN)
const edge = await startProxy({ contextFor: async () => context })
const behindBalancer = await startProxy({ contextFor: async () => context, trusted: ['127.0.0.1'] })
afterAll(async () => {
  for (const { proxy, failures } of [edge, behindBalancer]) {
    await proxy.close()
    expect(failures).toEqual([])
  }
})

const NAMES = [
  ...[
    'Forwarded',
    'Forwarded-For',
    'X-Forwarded',
    'X-Original-Forwarded-For',
    'Client-IP',
    'X-Client-IP',
    'X-Real-IP',
    'X-Remote-IP',
  ],
  ...['X-Remote-Addr', 'X-Originating-IP', 'X-Cluster-Client-IP', 'True-Client-IP', 'CF-Connecting-IP', 'CF-Connecting-IPv6'],
  ...['Fastly-Client-IP', 'Fly-Client-IP', 'X-Appengine-User-IP', 'X-Azure-ClientIP', 'X-Envoy-External-Address'],
]
const FIELDS = NAMES.map((name) => [name, 'for=6.6.6.6'] as const)

/** Returns a backend's handler that responds to each request head with these fields. */
const answering = (fields: string) => (received: string, socket: Socket) => {
  if (received.endsWith('\r\n\r\n')) socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 2\r\n${fields}\r\nok`)
}

describe.each(TRANSPORTS)('over %s', (transport) => {
  test.each([
    { how: 'as they are', spelled: (name: string) => name },
    { how: 'in upper case', spelled: (name: string) => name.toUpperCase() },
    { how: 'with underscores', spelled: (name: string) => name.replaceAll('-', '_') },
  ])('a visitor cannot send address fields to a backend: names $how', async ({ spelled }) => {
    await using tunnel = await tunnelBefore(edge, answering(''))
    const args = FIELDS.flatMap(([name, value]) => ['-H', `${spelled(name)}: ${value}`])
    expect((await curl(edge, { transport, host: tunnel.host, args })).status).toBe(200)
    expect(tunnel.received.join('')).not.toContain('6.6.6.6')
    expect(tunnel.received.join('')).toContain('X-Forwarded-For: 127.0.0.1\r\n')
  })

  test('address fields of a trusted balancer reach the backend', async () => {
    await using tunnel = await tunnelBefore(behindBalancer, answering(''))
    const args = FIELDS.flatMap(([name, value]) => ['-H', `${name}: ${value}`])
    expect((await curl(behindBalancer, { transport, host: tunnel.host, args })).status).toBe(200)
    const sent = tunnel.received.join('').toLowerCase()
    expect(NAMES.filter((name) => !sent.includes(`\r\n${name.toLowerCase()}: for=6.6.6.6\r\n`))).toEqual([])
  })

  test('the tunnel’s header modifications apply to address fields', async () => {
    const liveHeaderModifications = [
      { name: 'X-Real-IP', value: '7.7.7.7', type: 'request' as const },
      { name: 'True-Client-IP', value: '', type: 'request' as const },
    ]
    await using tunnel = await tunnelBefore(behindBalancer, answering(''), { liveHeaderModifications })
    const args = ['-H', 'X-Real-IP: 6.6.6.6', '-H', 'True-Client-IP: 6.6.6.6']
    await curl(behindBalancer, { transport, host: tunnel.host, args })
    expect(tunnel.received.join('')).toContain('\r\nX-Real-IP: 7.7.7.7\r\n')
    expect(tunnel.received.join('')).not.toContain('6.6.6.6')
  })

  test('a tunnel cannot send Clear-Site-Data, from its backend or its settings', async () => {
    const liveHeaderModifications = [{ name: 'clear-Site-Data', value: '"cookies"', type: 'response' as const }]
    const fields = 'Clear-Site-Data: "cookies"\r\nCLEAR-SITE-DATA: "*"\r\nClear_Site_Data: "*"\r\nX-Own: 1\r\n'
    await using tunnel = await tunnelBefore(edge, answering(fields), { liveHeaderModifications })
    await using hinting = await tunnelBefore(edge, (_received, socket) =>
      socket.write(`HTTP/1.1 103 Early Hints\r\n${fields}\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok`),
    )
    for (const { host } of [tunnel, hinting]) {
      const { header } = await curl(edge, { transport, host })
      expect([header('x-own'), header('clear[-_]site[-_]data')]).toEqual([host === tunnel.host ? '1' : undefined, undefined])
    }
  })

  test('Set-Cookie loses a Domain attribute, so that no other tunnel gets the cookie', async () => {
    const cookies = [
      `a=1; Domain=${DOMAIN}; Path=/`,
      `b=1; DOMAIN = .${DOMAIN.toUpperCase()}`,
      `c=1; Domain=; Domain=${DOMAIN}`,
      `__Host-d=1; Secure; Path=/; Domain=${DOMAIN}`,
      `__Secure-e=1; Secure; Domain=${DOMAIN}`,
      `f=1;domain\t=\t${DOMAIN}`,
    ]
    const fields = cookies.map((cookie, index) => `${['Set-Cookie', 'set-cookie', 'SET-COOKIE'][index % 3] ?? ''}: ${cookie}\r\n`)
    await using tunnel = await tunnelBefore(
      edge,
      answering(`${fields.join('')}Set_Cookie: g=1; Domain=${DOMAIN}\r\nSet-Cookie2: h=1; Domain=.${DOMAIN}\r\n`),
    )
    expect(await cookiesOf(transport, tunnel.host)).toEqual([
      'a=1; Path=/',
      'b=1',
      'c=1',
      '__Host-d=1; Secure; Path=/',
      '__Secure-e=1; Secure',
      'f=1',
    ])
  })
})

async function cookiesOf(transport: Transport, host: string): Promise<readonly string[]> {
  const { body } = await curl(edge, { transport, host, args: ['-w', '%{header_json}'] })
  const headers = JSON.parse(body.slice(body.indexOf('{'))) as Readonly<Record<string, readonly string[]>>
  return Object.entries(headers).flatMap(([name, values]) => (/^set.cookie/i.test(name) ? values : []))
}
