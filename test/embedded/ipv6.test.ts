import { readFile } from 'node:fs/promises'
import { isIPv6 } from 'node:net'
import { networkInterfaces } from 'node:os'
import { expect, test, vi } from 'vitest'
import { type Seen, startLocalServer, visit } from '../support/edge/visitor.ts'
import { startMooring } from '../support/deployment/mooring.ts'
import { query } from '../support/postgresql/sql.ts'
import { person } from '../support/edge/openssh.ts'
import { LATER } from '../support/patience.ts'

const TUNNELS = '/v1/organizations/default/namespaces/default/tunnels'

/** Loopback addresses of this machine. The last one is that of IPv6 where available, on which no other test listens. */
const loopbacks = (networkInterfaces().lo ?? []).map(({ address }) => address)

test.each(loopbacks.slice(-1))(
  'listening on %s, databases and tunnels have that address in URLs and commands and work there',
  async (address) => {
    await using local = await startLocalServer()
    await using user = await person()
    await using mooring = await startMooring({ args: ['--listen', address] })
    const { sharedUrl, sshHost, region, regionId, ca: caFile } = mooring.ready
    const ca = await readFile(caFile, 'utf8')
    const everyone = isIPv6(address) ? { own: '::/0', other: '0.0.0.0/0' } : { own: '0.0.0.0/0', other: '::/0' }
    expect([new URL(sharedUrl).hostname.replace(/[[\]]/g, ''), sshHost]).toEqual([address, address])

    const instanceBody = { identifier: 'first', region, motor: 'postgresql-15.4.0' }
    const { instance } = (await mooring.call('POST', '/v1/instances', { body: instanceBody })).body.data
    expect(new URL(instance.uri).hostname.replace(/[[\]]/g, '')).toBe(address)
    expect(await query(instance, 'SELECT host(inet_client_addr()) AS source')).toEqual([{ source: address }])

    const config = { authorizedKeys: [user.publicKey], sshIPWhitelist: [everyone.own], ingressIPWhitelist: [everyone.own] }
    const { tunnel } = (await mooring.call('POST', TUNNELS, { body: { name: 'web', regionId, config } })).body.data
    expect(tunnel.sshCommand.endsWith(`@${address}`)).toBe(true)
    await using client = await user.forward(tunnel, local.port)
    const visited = (scheme: 'http' | 'https') => visit(ca, tunnel, '/a', { scheme })
    await vi.waitFor(async () => expect((await visited('https')).status, client.said()).toBe(200), LATER)
    for (const scheme of ['http', 'https'] as const) {
      const { headers } = JSON.parse((await visited(scheme)).body) as Seen
      expect(headers).toMatchObject({ 'x-forwarded-for': address, 'x-forwarded-proto': scheme })
    }
    const patch = async (changed: object) =>
      expect(await mooring.call('PATCH', `${TUNNELS}/${tunnel.id}`, { body: { config: changed } })).toMatchObject({ status: 200 })
    await patch({ ingressIPWhitelist: [everyone.other], httpsOnly: true })
    await vi.waitFor(async () => expect((await visited('https')).headers['mooring-error']).toBe('ip_denied'), LATER)
    await patch({ ingressIPWhitelist: [] })
    await vi.waitFor(async () => expect((await visited('http')).headers.location).toBe(`${tunnel.directUrl}/a`), LATER)
    await vi.waitFor(async () => {
      const { requests } = (await mooring.call('GET', `${TUNNELS}/${tunnel.id}/requests`)).body.data
      expect(new Set(requests.map(({ sourceIp }) => sourceIp))).toEqual(new Set([address]))
    }, LATER)
    await patch({ sshIPWhitelist: [everyone.other] })
    expect(await client.exited).not.toBe(0)
  },
)
