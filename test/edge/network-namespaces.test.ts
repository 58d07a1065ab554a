import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { sentences } from '../../edge/ssh/sentences.ts'
import { curl, TRANSPORTS, type Transport } from '../support/edge/visitor.ts'
import { type Family, makeNetworkNamespace, type NetworkNamespace } from '../support/edge/network-namespace.ts'
import { running, type Running, sshUser, type SshUser } from '../support/edge/openssh.ts'
import { startWholeEdge, type WholeEdge } from '../support/edge/whole-edge.ts'
import { freshHostname, temporaryPassword } from '../support/edge/ssh-edge.ts'
import { SOON } from '../support/patience.ts'

/** Visitors and clients from other networks than this machine's, each with its own address. */

const FAMILIES: readonly Family[] = ['ipv4', 'ipv6']

const cleanup = new AsyncDisposableStack()
let near: NetworkNamespace
let far: NetworkNamespace
let edge: WholeEdge
let user: SshUser
let port: number

beforeAll(async () => {
  near = cleanup.use(await makeNetworkNamespace())
  far = cleanup.use(await makeNetworkNamespace())
  edge = cleanup.use(await startWholeEdge({ host: '::' }))
  cleanup.defer(() => expect(edge.logged()).toBe(''))
  user = cleanup.use(await sshUser(edge))
  await writeFile(ca(), edge.ca)
  const backend = createServer((req, res) => res.end(req.headers['x-forwarded-for'])).listen(0, '::')
  cleanup.defer(() => {
    backend.closeAllConnections()
    backend.close()
  })
  await once(backend, 'listening')
  port = (backend.address() as AddressInfo).port
})
afterAll(() => cleanup.disposeAsync())

const ca = () => join(user.directory, 'ca.pem')

interface Coming {
  readonly from: NetworkNamespace
  readonly family: Family
}

/** Sends a request with curl, which trusts the edge's certificate. */
function visit(hostname: string, transport: Transport, { from, family }: Coming) {
  const { httpPort, httpsPort } = { httpPort: edge.ports.http, httpsPort: edge.ports.https }
  const [host, address] = [`${hostname}.${edge.domain}`, from.host[family]]
  return curl({ httpPort, httpsPort }, { transport, host, address, ca: ca(), inside: from.inside })
}

/** Logs in with the machine's ssh, and forwards to the backend. */
function client(hostname: string, { from, family }: Coming, password?: { readonly askpass: string; readonly tries: number }) {
  const how = password
    ? ['BatchMode=no', 'PreferredAuthentications=password', `NumberOfPasswordPrompts=${password.tries}`]
    : [`IdentityFile=${user.identity}`]
  const options = [...how, `HostKeyAlias=[127.0.0.1]:${edge.ports.ssh}`].flatMap((option) => ['-o', option])
  const target = family === 'ipv4' ? from.host.ipv4 : `[${from.host.ipv6}]`
  const to = ['-p', String(edge.ports.ssh), '-R', `${hostname}:80:${target}:${port}`, `${hostname}@${from.host[family]}`]
  const env: Record<string, string> = password ? { SSH_ASKPASS: password.askpass, SSH_ASKPASS_REQUIRE: 'force' } : {}
  return running(from.inside(['ssh', ...options, ...user.options, ...to]), env)
}

/** Resolves with the client's output once the edge has disconnected it. */
async function farewell(one: Running): Promise<string> {
  await vi.waitFor(() => expect(one.child.exitCode, one.said()).toBe(255), SOON)
  await one.exited
  return one.said()
}

/** Creates the program that gives ssh its password. @returns the path */
async function askpass(password: string): Promise<string> {
  const file = join(user.directory, `askpass-${freshHostname()}`)
  await writeFile(file, `#!/bin/sh\necho ${password}\n`, { mode: 0o700 })
  return file
}

describe.each(FAMILIES)('over %s', (family) => {
  test.each(TRANSPORTS)(
    '%s requests are allowed and rejected by source address as SOON as the ingress list changes',
    async (transport) => {
      const hostname = freshHostname()
      const allow = (...ingressIPWhitelist: string[]) =>
        edge.set(hostname, { authorizedKeys: [user.publicKey], ingressIPWhitelist })
      await allow()
      await using serving = client(hostname, { from: near, family })
      const visited = (from: NetworkNamespace) => visit(hostname, transport, { from, family })
      await vi.waitFor(async () => expect((await visited(near)).status, serving.said()).toBe(200), SOON)
      const served = ({ own }: NetworkNamespace) => ({ status: 200, body: own[family] })
      const denied = { status: 403, reason: 'ip_denied' }

      expect(await visited(near)).toMatchObject(served(near))
      expect(await visited(far)).toMatchObject(served(far))
      await allow(near.own[family])
      expect(await visited(near)).toMatchObject(served(near))
      expect(await visited(far)).toMatchObject(denied)
      await allow(far.cidr[family])
      expect(await visited(near)).toMatchObject(denied)
      expect(await visited(far)).toMatchObject(served(far))

      const seen = [
        { sourceIp: far.own[family], status: 200, reason: null },
        { sourceIp: near.own[family], status: 403, reason: 'ip_denied' },
        { sourceIp: far.own[family], status: 403, reason: 'ip_denied' },
        { sourceIp: near.own[family], status: 200, reason: null },
        { sourceIp: far.own[family], status: 200, reason: null },
      ]
      const protocol = transport === 'h2' ? 'h2' : 'http/1.1'
      await vi.waitFor(async () => {
        const { requests } = await edge.records(hostname)
        expect(requests.slice(0, 5)).toMatchObject(seen.map((request) => ({ ...request, protocol })))
      }, SOON)
    },
  )

  test('logins are allowed and rejected by source address, and the client shows the rejection', async () => {
    const hostname = freshHostname()
    const allow = (...sshIPWhitelist: string[]) => edge.set(hostname, { authorizedKeys: [user.publicKey], sshIPWhitelist })
    await allow(near.cidr[family])
    await using refused = client(hostname, { from: far, family })
    expect(await farewell(refused)).toContain(sentences.notAccepted)
    await using welcome = client(hostname, { from: near, family })
    const visited = () => visit(hostname, 'h2', { from: far, family })
    await vi.waitFor(async () => expect((await visited()).status, welcome.said()).toBe(200), SOON)

    await allow(far.own[family])
    expect(await farewell(welcome)).toContain(sentences.revoked('ip_denied'))
    await using next = client(hostname, { from: far, family })
    await vi.waitFor(async () => expect((await visited()).status, next.said()).toBe(200), SOON)
    const logins = [
      { type: 'connect', clientIp: far.own[family] },
      { type: 'disconnect', clientIp: near.own[family], reason: 'ip_denied' },
      { type: 'connect', clientIp: near.own[family] },
      { type: 'refused', clientIp: far.own[family], reason: 'ip_denied' },
    ]
    await vi.waitFor(async () => expect((await edge.records(hostname)).connections).toMatchObject(logins), SOON)
  })

  test('after password guesses, their source can log in by key and not by a weak password; other sources can use both', async () => {
    const { password, routed } = temporaryPassword(60_000, 'mt_guessable')
    const [guessed, hostname] = [freshHostname(), freshHostname()]
    await edge.set(guessed, {}, [routed])
    await edge.set(hostname, { authorizedKeys: [user.publicKey] })
    const [wrong, right] = [
      { askpass: await askpass('mt_guess'), tries: 10 },
      { askpass: await askpass(password), tries: 1 },
    ]
    const attempt = async (...how: Parameters<typeof client>) => {
      await using one = client(...how)
      return await farewell(one)
    }
    const guesser = { from: far, family }
    const owner = { from: near, family }
    for (let round = 0; round < 3; round++) expect(await attempt(guessed, guesser, wrong)).toContain(sentences.notAccepted)
    expect(await attempt(guessed, guesser, right)).toContain(sentences.refused('rate'))
    for (let round = 0; round < 3; round++) expect(await attempt('nobody', guesser, wrong)).toContain(sentences.notAccepted)
    expect(await attempt('nobody', guesser, right)).toContain(sentences.refused('rate'))
    {
      await using byKey = client(hostname, guesser)
      await vi.waitFor(async () => expect((await visit(hostname, 'h2', owner)).status, byKey.said()).toBe(200), SOON)
    }

    await using first = client(guessed, owner, right)
    await using second = client(hostname, owner)
    const visited = async (name: string) => (await visit(name, 'https', guesser)).status
    await vi.waitFor(async () => expect(await visited(guessed), first.said()).toBe(200), SOON)
    await vi.waitFor(async () => expect(await visited(hostname), second.said()).toBe(200), SOON)
  })
})
