import { sshClient } from '../../support/edge/ssh2-client.ts'
import { readFileSync } from 'node:fs'
import { utils } from 'ssh2'
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { freshHostname, startSshEdge } from '../../support/edge/ssh-edge.ts'
import { SOON } from '../../support/patience.ts'

/** Logins by key with a user name that is not a hostname. */

const edge = await startSshEdge()
afterAll(() => edge[Symbol.asyncDispose]())
const never = new AbortController().signal

let count = 0
function newKey() {
  const name = `key-${count++}`
  return { name, publicKey: edge.makeKey(name) }
}

/** Creates one tunnel for each config. All of them list the key. @returns their hostnames */
function tunnels(publicKey: string, ...configs: readonly object[]): readonly string[] {
  return configs.map((config) => {
    const hostname = freshHostname()
    edge.routes.set(hostname, { authorizedKeys: [publicKey], ...config })
    return hostname
  })
}

const SEVERAL = 'Mooring: several tunnels list this key.'
const FORWARD = ['-N', '-R', '80:127.0.0.1:9']

describe('a login by key', () => {
  test.each(['any-name', 'root', 'tunnel'])('as user %s opens the tunnel when only one lists the key', async (user) => {
    const { name, publicKey } = newKey()
    const [hostname = ''] = tunnels(publicKey, {})
    edge.ssh({ user, key: name, args: FORWARD })
    expect(await edge.sessions.waitFor(hostname, SOON.timeout, never)).toMatchObject({ hostname, login: { authMethod: 'key' } })
  })

  test('with any user opens no tunnel when several list the key, and shows those that it could open', async () => {
    const { name, publicKey } = newKey()
    const [one = '', two = '', denied = ''] = tunnels(publicKey, {}, {}, { sshIPWhitelist: ['203.0.113.1'] })
    const client = edge.ssh({ user: 'any-name', key: name, args: FORWARD })
    expect(await client.exited).toBe(255)
    expect(client.output.stderr).toContain(SEVERAL)
    for (const hostname of [one, two]) expect(client.output.stderr).toContain(hostname)
    expect(client.output.stderr).not.toContain(denied)
    edge.ssh({ user: two, key: name, args: FORWARD })
    expect(await edge.sessions.waitFor(two, SOON.timeout, never)).toBeDefined()
  })

  test('with any user shows at most ten of many tunnels', async () => {
    const { name, publicKey } = newKey()
    const hostnames = tunnels(publicKey, ...Array.from({ length: 30 }, () => ({})))
    const client = edge.ssh({ user: 'any-name', key: name, args: FORWARD })
    expect(await client.exited).toBe(255)
    expect(client.output.stderr).toContain(' and others.')
    expect(hostnames.filter((hostname) => client.output.stderr.includes(hostname))).toHaveLength(10)
  })

  test.each([
    ['without a tunnel', []],
    ['of a tunnel that accepts passwords only', [{ authMode: 'token' }]],
    ['of a tunnel that rejects the address', [{ sshIPWhitelist: ['203.0.113.1'] }]],
    ['of two tunnels that reject the address', [{ sshIPWhitelist: ['203.0.113.1'] }, { sshIPWhitelist: ['203.0.113.1'] }]],
  ])('with any user is rejected without a hint for a key %s', async (_which, configs) => {
    const { name, publicKey } = newKey()
    tunnels(publicKey, ...configs)
    const client = edge.ssh({ user: 'any-name', key: name, args: FORWARD })
    expect(await client.exited).toBe(255)
    expect(client.output.stderr).toContain('Mooring: this login is not accepted.')
    expect(client.output.stderr).not.toContain(SEVERAL)
  })

  test.each([
    ['hostname', () => freshHostname()],
    ['host', () => `${freshHostname()}.tunnel.localhost`],
  ])('and the %s of an unknown tunnel as user opens no other tunnel', async (_form, userOf) => {
    const { name, publicKey } = newKey()
    tunnels(publicKey, {})
    const client = edge.ssh({ user: userOf(), key: name, args: FORWARD })
    expect(await client.exited).toBe(255)
    expect(client.output.stderr).toContain('Mooring: this login is not accepted.')
  })

  test('with any user follows changes of the tunnels', async () => {
    const { name, publicKey } = newKey()
    const [one = '', two = ''] = tunnels(publicKey, {}, {})
    edge.routes.set(one, { authorizedKeys: [] })
    edge.ssh({ user: 'any-name', key: name, args: FORWARD })
    expect(await edge.sessions.waitFor(two, SOON.timeout, never)).toBeDefined()
    edge.routes.set(one, { authorizedKeys: [publicKey] })
    edge.routes.delete(two)
    edge.ssh({ user: 'any-name', key: name, args: FORWARD })
    expect(await edge.sessions.waitFor(one, SOON.timeout, never)).toBeDefined()
  })
})

test('a client with only the public key learns no hostname, even with a wrong signature', async () => {
  const { publicKey } = newKey()
  const hostnames = tunnels(publicKey, {}, {})
  const [type = '', base64 = ''] = publicKey.split(' ')
  const blob = Buffer.from(base64, 'base64')
  const client = sshClient()
  onTestFinished(() => void client.destroy())
  let [heard, asked] = ['', 0]
  const sent: string[] = []
  client.on('banner', (text) => (heard += text))
  const ended = new Promise<void>((resolve) => {
    client.on('error', ({ message }) => (heard += message)).once('close', () => resolve())
  })
  // Public key of the victim, with another private key.
  const { name } = newKey()
  const own = readFileSync(edge.file(name))
  const parsed = utils.parseKey(own)
  if (parsed instanceof Error) throw parsed
  const forged = Object.assign(Object.create(parsed) as typeof parsed, { type, getPublicSSH: () => blob })
  client.connect({
    ...{ host: '127.0.0.1', port: edge.port, username: 'any-name' },
    authHandler: (_left, _partial, next) =>
      next(asked++ < 2 ? { type: 'publickey', username: 'any-name', key: forged as never } : (false as never)),
    debug: (line) => void sent.push(line),
  })
  await ended
  for (const hostname of hostnames) expect(heard).not.toContain(hostname)
  expect(heard).not.toContain(SEVERAL)
  expect(heard).toContain('authentication methods failed')
  expect(sent.filter((line) => line.includes('Sending USERAUTH_REQUEST (publickey)'))).toHaveLength(2)
  await vi.waitFor(() => expect(edge.sessions.of(hostnames[0] ?? '')).toEqual([]), SOON)
})
