import { createHash, randomBytes } from 'node:crypto'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Session } from '../../edge/session.ts'
import { openChannel } from '../support/channel-recorder.ts'
import { freshHostname, startBackend, startSshEdge, temporaryPassword } from '../support/ssh-edge.ts'

const edge = await startSshEdge()
const echo = await startBackend((socket) => socket.pipe(socket))

const never = new AbortController().signal
const soon = { timeout: 10_000, interval: 10 }

async function sessionOf(hostname: string): Promise<Session> {
  const session = await edge.sessions.waitFor(hostname, 10_000, never)
  if (!session) throw new Error('no session came')
  return session
}

/** A tunnel that takes the user's key, and a client that serves it from the echo backend. */
async function served(args: readonly string[] = ['-N'], config = {}) {
  const hostname = freshHostname()
  edge.routes.set(hostname, { authorizedKeys: [edge.publicKey], ...config })
  const client = edge.ssh({ user: hostname, args: [...args, '-R', `${hostname}:80:127.0.0.1:${echo.port}`] })
  onTestFinished(() => {
    client.kill('SIGKILL')
  })
  return { hostname, client, session: await sessionOf(hostname) }
}

const recordsOf = (hostname: string) => edge.records.filter(({ tunnel }) => tunnel === `uid-${hostname}`)

async function echoed(session: Session, text = 'ping'): Promise<string> {
  const { channel, received, over } = openChannel(session)
  channel.write(Buffer.from(text))
  channel.end()
  await over
  return received().toString()
}

describe('a login', () => {
  test.each([
    { type: 'ed25519', options: [] },
    { type: 'ecdsa', options: ['-b', '256'] },
    { type: 'ecdsa', options: ['-b', '521'] },
    { type: 'rsa', options: ['-b', '2048'] },
  ])('by a key of type $type $options serves its tunnel', async ({ type, options }) => {
    const hostname = freshHostname()
    const publicKey = edge.makeKey(hostname, type, ...options)
    edge.routes.set(hostname, { authMode: 'key', authorizedKeys: [publicKey] })
    const client = edge.ssh({ user: hostname, key: hostname, args: ['-N', '-R', `${hostname}:80:127.0.0.1:${echo.port}`] })
    const session = await sessionOf(hostname)
    expect(await echoed(session)).toBe('ping')
    expect(client.output.text).toContain(`https://${hostname}.tunnel.localhost`)
    client.kill()
    await client.exited
    await vi.waitFor(() => expect(recordsOf(hostname)).toHaveLength(2), soon)
    const [connect, disconnect] = recordsOf(hostname)
    expect(connect).toMatchObject({
      type: 'connect',
      authMethod: 'key',
      clientIp: '127.0.0.1',
      sessionId: session.id,
      durationMs: null,
    })
    expect(connect?.keyFingerprint).toMatch(/^SHA256:/)
    expect(disconnect).toMatchObject({ type: 'disconnect', reason: 'client_disconnected', sessionId: session.id })
    expect(disconnect?.durationMs).toBeGreaterThan(0)
  })

  test.each([
    { does: 'as the hostname', user: (hostname: string) => hostname, bind: (hostname: string) => hostname },
    { does: 'as any user, for the hostname that it forwards', user: () => 'anyone', bind: (hostname: string) => hostname },
    { does: 'as any user, for the tunnel of the password', user: () => 'root', bind: () => '' },
  ])('by a temporary password $does', async ({ user, bind }) => {
    const hostname = freshHostname()
    const { password, routed } = temporaryPassword()
    edge.routes.set(hostname, { authMode: 'token' }, [routed])
    const client = edge.ssh({ user: user(hostname), password, args: ['-N', '-R', `${bind(hostname)}:80:127.0.0.1:${echo.port}`] })
    expect(await echoed(await sessionOf(hostname))).toBe('ping')
    client.kill()
    await client.exited
    expect(recordsOf(hostname)[0]).toMatchObject({
      type: 'connect',
      authMethod: 'token',
      passwordId: routed.id,
      keyFingerprint: null,
    })
  })

  const stranger = edge.makeKey('stranger')
  const expired = temporaryPassword(-1)
  test.each([
    { does: 'an unknown hostname', config: undefined, reason: undefined },
    { does: 'a key that is not the tunnel’s', config: { authorizedKeys: [stranger] }, reason: 'key' },
    { does: 'an address that is not listed', config: { sshIPWhitelist: ['203.0.113.0/24'] }, reason: 'ip_denied' },
    { does: 'another authentication mode', config: { authMode: 'token' as const }, reason: 'auth_mode' },
    { does: 'a wrong password', config: { authMode: 'token' as const }, password: 'mt_wrong', reason: 'password' },
    {
      does: 'an expired password',
      config: {},
      password: expired.password,
      reason: 'expired',
      sentence: 'this password has expired',
    },
  ])('with $does is refused with a sentence', async ({ config, password, reason, sentence }) => {
    const hostname = freshHostname()
    await using own = await startSshEdge()
    if (config) own.routes.set(hostname, { authorizedKeys: [own.publicKey], ...config }, [expired.routed])
    const client = own.ssh({
      user: hostname,
      args: ['-N', '-R', '80:127.0.0.1:9'],
      ...(password === undefined ? {} : { password }),
    })
    expect(await client.exited).toBe(255)
    expect(client.output.text).toContain(sentence ?? 'Mooring: this login is not accepted.')
    expect(client.output.text).toContain('Permission denied (publickey,password)')
    await vi.waitFor(() => expect(own.records.map((record) => record.reason)).toEqual(reason ? [reason] : []), soon)
    if (reason) expect(own.records[0]).toMatchObject({ type: 'refused', tunnel: `uid-${hostname}`, clientIp: '127.0.0.1' })
  })

  test('is refused to a source that has failed too often, and never to the tunnel for others', async () => {
    await using own = await startSshEdge({ failedPerSource: 3 })
    const hostname = freshHostname()
    own.routes.set(hostname, { authorizedKeys: [own.publicKey] })
    const client = own.ssh({ user: hostname, password: 'mt_guess', args: ['-N'] })
    await client.exited
    const again = own.ssh({ user: hostname, args: ['-N', '-R', '80:127.0.0.1:9'] })
    expect(await again.exited).toBe(255)
    expect(again.output.text).toContain('too many failed logins from your address')
  })

  test('is not held against somebody who has many keys, or has tried many times', async () => {
    await using own = await startSshEdge()
    const hostname = freshHostname()
    own.routes.set(hostname, { authorizedKeys: [own.publicKey] })
    own.makeKey('wrong')
    const tries = Array.from({ length: 20 }, () => own.ssh({ user: hostname, key: 'wrong', args: ['-N'] }).exited)
    await Promise.all(tries)
    const others = Array.from({ length: 12 }, (_, index) => own.file(`other-${index}`))
    for (const file of others) own.makeKey(file.slice(file.lastIndexOf('/') + 1))
    const before = others.flatMap((file) => ['-i', file])
    own.ssh({ user: hostname, args: [...before, '-N', '-R', '80:127.0.0.1:9'] })
    expect(await own.sessions.waitFor(hostname, 10_000, never)).toBeDefined()
  })

  test('is refused when the tunnel has as many sessions as it may', async () => {
    await using own = await startSshEdge({ sessionsPerTunnel: 1 })
    const hostname = freshHostname()
    own.routes.set(hostname, { authorizedKeys: [own.publicKey] })
    own.ssh({ user: hostname, args: ['-N', '-R', '80:127.0.0.1:9'] })
    await own.sessions.waitFor(hostname, 10_000, never)
    const second = own.ssh({ user: hostname, args: ['-N', '-R', '80:127.0.0.1:9'] })
    expect(await second.exited).toBe(255)
    expect(second.output.text).toContain('as many connections as it may have')
    expect(own.records.at(-1)).toMatchObject({ type: 'refused', reason: 'too_many_sessions' })
  })

  test('that does not come in time ends the connection', async () => {
    await using own = await startSshEdge({ loginGraceMs: 100 })
    const { connect } = await import('node:net')
    const socket = connect(own.port, '127.0.0.1')
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.resume()
    await closed
  })
})

describe('a forward', () => {
  test.each(['HOST', 'HOST.tunnel.localhost', '', 'localhost', '*', '0.0.0.0'])('may name %j', async (name) => {
    const hostname = freshHostname()
    edge.routes.set(hostname, { authorizedKeys: [edge.publicKey] })
    const bind = name.replace('HOST', hostname)
    const client = edge.ssh({ user: hostname, args: ['-N', '-R', `${bind}:80:127.0.0.1:${echo.port}`] })
    expect(await echoed(await sessionOf(hostname))).toBe('ping')
    client.kill()
    await client.exited
  })

  test.each([
    {
      does: 'another hostname',
      forward: 'deadbeefdeadbeef:80:127.0.0.1:9',
      sentence: '"deadbeefdeadbeef" is not the tunnel of this login',
    },
    { does: 'another port', forward: '8080:127.0.0.1:9', sentence: 'a tunnel forwards port 80, not 8080' },
    { does: 'no port', forward: '0:127.0.0.1:9', sentence: 'a tunnel forwards port 80, not 0' },
  ])('of $does is refused with a sentence', async ({ forward, sentence }) => {
    const hostname = freshHostname()
    edge.routes.set(hostname, { authorizedKeys: [edge.publicKey] })
    const client = edge.ssh({ user: hostname, args: ['-N', '-R', forward] })
    expect(await client.exited).toBe(255)
    expect(client.output.text).toContain(sentence)
    expect(edge.sessions.of(hostname)).toEqual([])
  })

  test('beside another one is refused with a sentence', async () => {
    const hostname = freshHostname()
    edge.routes.set(hostname, { authorizedKeys: [edge.publicKey] })
    const client = edge.ssh({ user: hostname, args: ['-N', '-R', '80:127.0.0.1:9', '-R', 'localhost:80:127.0.0.1:10'] })
    expect(await client.exited).toBe(255)
    expect(client.output.text).toContain('Mooring: one forward a connection.')
    expect(recordsOf(hostname).at(-1)).toMatchObject({ type: 'disconnect', reason: 'forward_refused' })
  })

  test('that comes when another one serves is refused, and that one serves on', async () => {
    const control = edge.file('control')
    const { hostname, session } = await served(['-N', '-M', '-S', control])
    const later = edge.ssh({ user: hostname, args: ['-S', control, '-O', 'forward', '-R', 'localhost:80:127.0.0.1:9'] })
    expect(await later.exited).toBe(255)
    expect(await echoed(session)).toBe('ping')
  })

  test('to another host than the client’s own is refused with a sentence where the tunnel does not allow it', async () => {
    const hostname = freshHostname()
    const target = { authorizedKeys: [edge.publicKey], target: 'db.internal:5432' }
    edge.routes.set(hostname, target)
    const client = edge.ssh({ user: hostname, args: ['-N', '-R', '80'] })
    expect(await client.exited).toBe(255)
    expect(client.output.text).toContain('its setting forwardToOtherHosts does not allow')

    edge.routes.set(hostname, { ...target, forwardToOtherHosts: true })
    const allowed = edge.ssh({ user: hostname, args: ['-N', '-R', '80'] })
    await sessionOf(hostname)
    edge.routes.set(hostname, target)
    expect(await allowed.exited).toBe(255)
    expect(allowed.output.text).toContain('its setting forwardToOtherHosts does not allow')
  })

  test('is answered before a visitor’s channel is opened', async () => {
    const hostname = freshHostname()
    edge.routes.set(hostname, { authorizedKeys: [edge.publicKey] })
    const opened = edge.sessions.waitFor(hostname, 10_000, never).then((session) => session && echoed(session))
    const client = edge.ssh({ user: hostname, args: ['-vv', '-N', '-R', `80:127.0.0.1:${echo.port}`] })
    expect(await opened).toBe('ping')
    const happened = ['remote forward success', 'rtype keepalive@openssh.com', 'ctype forwarded-tcpip']
    const places = happened.map((line) => client.output.text.indexOf(line))
    expect(places).not.toContain(-1)
    expect(places).toEqual(places.toSorted((a, b) => a - b))
    client.kill()
    await client.exited
  })

  test('whose target cannot be reached refuses the channel, and serves on', async () => {
    const hostname = freshHostname()
    edge.routes.set(hostname, { authorizedKeys: [edge.publicKey] })
    const client = edge.ssh({ user: hostname, args: ['-N', '-R', '80:127.0.0.1:1'] })
    const session = await sessionOf(hostname)
    expect(await openChannel(session).over).toBe('refused connect_failed')
    expect(session.channels).toBe(0)
    client.kill()
    await client.exited
  })

  test('without a target connects to the one that the tunnel names', async () => {
    const hostname = freshHostname()
    edge.routes.set(hostname, { authorizedKeys: [edge.publicKey], target: `localhost:${echo.port}` })
    const client = edge.ssh({ user: hostname, args: ['-N', '-R', `${hostname}:80`] })
    const session = await sessionOf(hostname)
    expect(await echoed(session, 'through SOCKS')).toBe('through SOCKS')
    edge.routes.set(hostname, { authorizedKeys: [edge.publicKey], target: 'localhost:1' })
    expect(await openChannel(session).over).toBe('refused connect_failed')
    client.kill()
    await client.exited
  })
})

describe('a session', () => {
  test('channel says where the tunnel leads, and ctrl-C ends it', async () => {
    const { client, hostname } = await served(['-tt'])
    await vi.waitFor(() => expect(client.output.text).toContain('Press ctrl-C to end it.'), soon)
    expect(client.output.text).toContain(`https://${hostname}.tunnel.localhost leads to this connection.`)
    client.type('\x03')
    expect(await client.exited).toBe(0)
  })

  test('without a forward is told how to ask for one', async () => {
    const hostname = freshHostname()
    edge.routes.set(hostname, { authorizedKeys: [edge.publicKey] })
    const client = edge.ssh({ user: hostname })
    expect(await client.exited).toBe(1)
    expect(client.output.text).toContain(`Add -R ${hostname}:80:localhost:PORT.`)
  })

  test('carries 256 MiB both ways with a slow reader, in memory that does not follow the size', async () => {
    const { session } = await served()
    const block = randomBytes(64 * 1024)
    const blocks = 4096
    const sent = createHash('sha256')
    const got = createHash('sha256')
    let toSend = blocks
    let bytes = 0
    let most = 0
    const before = process.memoryUsage().arrayBuffers
    const pump = () => {
      let more = true
      while (more && toSend > 0) {
        toSend -= 1
        sent.update(block)
        more = channel.write(block)
      }
      if (toSend === 0) channel.end()
    }
    const { channel, over } = openChannel(session, {
      drained: pump,
      data(chunk) {
        got.update(chunk)
        bytes += chunk.length
        most = Math.max(most, process.memoryUsage().arrayBuffers)
        if (bytes % 7 === 0) return
        channel.pause()
        setImmediate(() => channel.resume())
      },
    })
    pump()
    expect(await over).toBe('closed')
    expect(bytes).toBe(blocks * block.length)
    expect(got.digest('hex')).toBe(sent.digest('hex'))
    // Some 60 MiB are garbage that nobody has collected yet, whether 64 MiB are carried or 512.
    expect(most - before).toBeLessThan(128 * 1024 * 1024)
  })

  test('stops a sender whose data nobody reads', async () => {
    const { session } = await served()
    let read = 0
    const { channel, over } = openChannel(session, { data: (chunk) => void (read += chunk.length) })
    channel.pause()
    const block = Buffer.alloc(64 * 1024)
    let taken = 0
    // What fits is the windows and the buffers between: far less than this.
    const offered = 64 * 1024 * 1024
    while (taken < offered && channel.write(block)) taken += block.length
    expect(taken).toBeLessThan(offered)
    expect(read).toBe(0)
    channel.destroy()
    expect(await over).toBe('lost')
  })

  test('survives new keys under load', async () => {
    await using own = await startSshEdge({ rekeyBytes: 1024 * 1024 })
    const hostname = freshHostname()
    own.routes.set(hostname, { authorizedKeys: [own.publicKey] })
    const client = own.ssh({ user: hostname, args: ['-v', '-N', '-R', `80:127.0.0.1:${echo.port}`] })
    const session = await own.sessions.waitFor(hostname, 10_000, never)
    if (!session) throw new Error('no session came')
    const exchanges = () => client.output.text.split('SSH2_MSG_NEWKEYS received').length - 1
    const text = 'x'.repeat(200_000)
    while (exchanges() < 4) expect(await echoed(session, text)).toBe(text)
  })

  test('gets new keys after a time, with a transfer running over them and without one', async () => {
    await using own = await startSshEdge({ rekeyMs: 100 })
    const hostname = freshHostname()
    own.routes.set(hostname, { authorizedKeys: [own.publicKey] })
    const client = own.ssh({ user: hostname, args: ['-v', '-N', '-R', `80:127.0.0.1:${echo.port}`] })
    const session = await own.sessions.waitFor(hostname, 10_000, never)
    if (!session) throw new Error('no session came')
    const exchanges = () => client.output.text.split('SSH2_MSG_NEWKEYS received').length - 1
    const [sent, returned] = [createHash('sha256'), createHash('sha256')]
    let onTheWay = 0
    const { channel, over } = openChannel(session, {
      data(chunk) {
        returned.update(chunk)
        onTheWay -= chunk.length
      },
    })
    for (let block = 0; exchanges() < 4; block += 1) {
      const bytes = Buffer.from(`${block} `.repeat(10_000))
      channel.write(bytes)
      sent.update(bytes)
      onTheWay += bytes.length
      await vi.waitFor(() => expect(onTheWay).toBeLessThan(256 * 1024), soon)
    }
    channel.end()
    expect(await over).toBe('closed')
    expect([onTheWay, returned.digest('hex')]).toEqual([0, sent.digest('hex')])

    const before = exchanges()
    await vi.waitFor(() => expect(exchanges()).toBeGreaterThan(before), soon)
    expect(await echoed(session)).toBe('ping')
  })

  test('that is killed leaves a record, and its channels are lost', async () => {
    const { hostname, client, session } = await served()
    const open = openChannel(session)
    await vi.waitFor(() => expect(open.said).toEqual(['opened']), soon)
    client.kill('SIGKILL')
    expect(await open.over).toBe('lost')
    await vi.waitFor(() => expect(recordsOf(hostname).at(-1)).toMatchObject({ type: 'disconnect' }), soon)
    expect(edge.sessions.of(hostname)).toEqual([])
    expect(await openChannel(session).over).toBe('refused session_lost')
  })

  test('that is silent is closed when a newer one comes, and the newer one serves', async () => {
    const { hostname, client, session } = await served()
    client.kill('SIGSTOP')
    const second = edge.ssh({ user: hostname, args: ['-N', '-R', `80:127.0.0.1:${echo.port}`] })
    await vi.waitFor(() => expect(edge.sessions.pick(hostname)?.id).not.toBe(session.id), soon)
    const newer = edge.sessions.pick(hostname)
    if (!newer) throw new Error('no session')
    expect(await echoed(newer)).toBe('ping')
    await vi.waitFor(() => expect(edge.sessions.of(hostname)).toHaveLength(1), soon)
    expect(recordsOf(hostname).at(-1)).toMatchObject({ type: 'disconnect', reason: 'replaced', sessionId: session.id })
    second.kill()
    await second.exited
  })

  test('shares the load with a newer one that it lives beside', async () => {
    const { hostname, session } = await served()
    const second = edge.ssh({ user: hostname, args: ['-N', '-R', `80:127.0.0.1:${echo.port}`] })
    await vi.waitFor(() => expect(edge.sessions.of(hostname)).toHaveLength(2), soon)
    const [newer] = edge.sessions.of(hostname)
    if (!newer) throw new Error('no session')
    const busy = openChannel(newer)
    await vi.waitFor(() => expect(edge.sessions.pick(hostname)).toBe(session), soon)
    busy.channel.destroy()
    second.kill()
    await second.exited
  })
})

describe('a change of the tunnel', () => {
  test.each([
    {
      does: 'its key is removed',
      config: { authorizedKeys: [] },
      reason: 'key_removed',
      sentence: 'was removed from the tunnel',
    },
    {
      does: 'its source is not listed',
      config: { sshIPWhitelist: ['203.0.113.1'] },
      reason: 'ip_denied',
      sentence: 'from your address',
    },
    {
      does: 'its mode is not taken',
      config: { authMode: 'token' as const },
      reason: 'auth_mode',
      sentence: 'this kind of login',
    },
    { does: 'the tunnel is gone', config: undefined, reason: 'tunnel_deleted', sentence: 'this tunnel was deleted' },
  ])('ends a session when $does', async ({ config, reason, sentence }) => {
    const { hostname, client } = await served()
    if (config) edge.routes.set(hostname, { authorizedKeys: [edge.publicKey], ...config })
    else edge.routes.delete(hostname)
    expect(edge.sessions.of(hostname)).toEqual([])
    expect(await client.exited).toBe(255)
    expect(client.output.text).toContain(sentence)
    expect(recordsOf(hostname).at(-1)).toMatchObject({ type: 'disconnect', reason })
  })

  test.each([
    { does: 'is revoked', left: () => [], reason: 'password_revoked' },
    { does: 'expires', left: (routed: object) => [{ ...routed, expiresAt: Date.now() } as never], reason: 'password_expired' },
  ])('ends a session whose password $does', async ({ left, reason }) => {
    const hostname = freshHostname()
    const { password, routed } = temporaryPassword()
    edge.routes.set(hostname, {}, [routed])
    const client = edge.ssh({ user: hostname, password, args: ['-N', '-R', '80:127.0.0.1:9'] })
    await sessionOf(hostname)
    edge.routes.set(hostname, {}, left(routed))
    expect(await client.exited).toBe(255)
    expect(recordsOf(hostname).at(-1)).toMatchObject({ type: 'disconnect', reason })
  })

  test('that does not concern it leaves a session alone', async () => {
    const { hostname, session } = await served()
    edge.routes.set(hostname, { authorizedKeys: [edge.publicKey], httpsOnly: true })
    expect(await echoed(session)).toBe('ping')
  })
})
