import { createHash, randomBytes } from 'node:crypto'
import { describe, expect, test, vi } from 'vitest'
import { DEFAULT_SSH_LIMITS } from '../../../edge/ssh/limits.ts'
import { openChannel, startEchoTunnels } from '../../support/edge/channels.ts'
import { freshHostname, startSshEdge } from '../../support/edge/ssh-edge.ts'
import { patient, SOON } from '../../support/patience.ts'

const { edge, echo, sessionOf, served, echoed, recordsOf } = await startEchoTunnels()
const never = new AbortController().signal

describe('a forward', () => {
  test.each(['HOST', 'HOST.tunnel.localhost', '', 'localhost', '*'])('may have the bind address %j', async (name) => {
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
    {
      does: 'every IPv4 address',
      forward: '0.0.0.0:80:127.0.0.1:9',
      sentence: '"0.0.0.0" is not the tunnel of this login',
    },
    { does: 'every IPv6 address', forward: '[::]:80:127.0.0.1:9', sentence: '"::" is not the tunnel of this login' },
    {
      does: 'a socket',
      forward: '/tmp/mooring.sock:127.0.0.1:9',
      sentence: 'a tunnel forwards port 80, not the socket "/tmp/mooring.sock"',
    },
    { does: 'another port', forward: '8080:127.0.0.1:9', sentence: 'a tunnel forwards port 80, not 8080' },
    { does: 'no port', forward: '0:127.0.0.1:9', sentence: 'a tunnel forwards port 80, not 0' },
  ])('of $does is rejected with a message', async ({ forward, sentence }) => {
    const hostname = freshHostname()
    edge.routes.set(hostname, { authorizedKeys: [edge.publicKey] })
    const client = edge.ssh({ user: hostname, args: ['-N', '-R', forward] })
    expect(await client.exited).toBe(255)
    expect(client.output.text).toContain(sentence)
    expect(edge.sessions.of(hostname)).toEqual([])
    expect(recordsOf(hostname).at(-1)).toMatchObject({ type: 'disconnect', reason: 'forward_refused' })
  })

  test('is rejected with a message beside another forward', async () => {
    const hostname = freshHostname()
    edge.routes.set(hostname, { authorizedKeys: [edge.publicKey] })
    const client = edge.ssh({ user: hostname, args: ['-N', '-R', '80:127.0.0.1:9', '-R', 'localhost:80:127.0.0.1:10'] })
    expect(await client.exited).toBe(255)
    expect(client.output.text).toContain('Mooring: one forward a connection.')
    expect(recordsOf(hostname).at(-1)).toMatchObject({ type: 'disconnect', reason: 'forward_refused' })
  })

  test.each([
    { what: 'a port', forward: 'localhost:80:127.0.0.1:9', sentence: 'Mooring: one forward a connection.' },
    { what: 'a socket', forward: '/tmp/mooring.sock:127.0.0.1:9', sentence: 'not the socket "/tmp/mooring.sock"' },
  ])('of $what beside a serving forward is rejected on the terminal, and the first serves on', async (later) => {
    const control = edge.file(`control-${freshHostname()}`)
    const { hostname, client, session } = await served(['-T', '-M', '-S', control])
    await vi.waitFor(() => expect(client.output.stdout).toContain('asks for none.'), SOON)
    const asked = edge.ssh({ user: hostname, args: ['-S', control, '-O', 'forward', '-R', later.forward] })
    expect(await asked.exited).toBe(255)
    await vi.waitFor(() => expect(client.output.stderr).toContain(later.sentence), SOON)
    expect(await echoed(session)).toBe('ping')
  })

  test('to another host than the client’s is rejected with a message unless the tunnel allows it', async () => {
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

  test('is confirmed before the edge opens a channel', async () => {
    const hostname = freshHostname()
    edge.routes.set(hostname, { authorizedKeys: [edge.publicKey] })
    const opened = edge.sessions.waitFor(hostname, SOON.timeout, never).then((session) => session && echoed(session))
    const client = edge.ssh({ user: hostname, args: ['-vv', '-N', '-R', `80:127.0.0.1:${echo.port}`] })
    expect(await opened).toBe('ping')
    const happened = ['remote forward success', 'rtype keepalive@openssh.com', 'ctype forwarded-tcpip']
    const positions = happened.map((line) => client.output.text.indexOf(line))
    expect(positions).not.toContain(-1)
    expect(positions).toEqual(positions.toSorted((a, b) => a - b))
    client.kill()
    await client.exited
  })

  test('whose target is unreachable refuses the channel and stays', async () => {
    const hostname = freshHostname()
    edge.routes.set(hostname, { authorizedKeys: [edge.publicKey] })
    const client = edge.ssh({ user: hostname, args: ['-N', '-R', '80:127.0.0.1:1'] })
    const session = await sessionOf(hostname)
    expect(await openChannel(session).over).toBe('refused connect_failed')
    expect(session.channels).toBe(0)
    client.kill()
    await client.exited
  })

  test('without a target connects to the target of the tunnel', async () => {
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
  test('shows the tunnel’s URL and target, and ends on ctrl-C', async () => {
    const { client, hostname } = await served(['-tt'])
    await vi.waitFor(() => expect(client.output.text).toContain('Press ctrl-C to end it.'), SOON)
    expect(client.output.text).toContain(`https://${hostname}.tunnel.localhost:28443 -> the target named in your -R\r\n`)
    client.type('\x03')
    expect(await client.exited).toBe(0)
  })

  test('without a forward shows the missing command', async () => {
    const hostname = freshHostname()
    edge.routes.set(hostname, { authorizedKeys: [edge.publicKey] })
    const client = edge.ssh({ user: hostname })
    expect(await client.exited).toBe(1)
    expect(client.output.text).toContain(`-R is missing. Type: ssh -p ${edge.port} -R 80:localhost:3000 ${hostname}@127.0.0.1`)
  })

  test('carries 256 MiB in both directions with a slow reader in bounded memory', { timeout: patient(60_000) }, async () => {
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
    // About 60 MiB are garbage, independent of the transferred size.
    expect(most - before).toBeLessThan(128 * 1024 * 1024)
  })

  test('stops a sender when the client does not read', async () => {
    const { session } = await served()
    let read = 0
    const { channel, over } = openChannel(session, { data: (chunk) => void (read += chunk.length) })
    channel.pause()
    const block = Buffer.alloc(64 * 1024)
    let taken = 0
    // Windows and buffers hold far less.
    const offered = 64 * 1024 * 1024
    while (taken < offered && channel.write(block)) taken += block.length
    expect(taken).toBeLessThan(offered)
    expect(read).toBe(0)
    channel.destroy()
    expect(await over).toBe('lost')
  })

  test('serves on through key exchanges under load', async () => {
    await using own = await startSshEdge({ rekeyBytes: 1024 * 1024 })
    const hostname = freshHostname()
    own.routes.set(hostname, { authorizedKeys: [own.publicKey] })
    const client = own.ssh({ user: hostname, args: ['-v', '-N', '-R', `80:127.0.0.1:${echo.port}`] })
    const session = await own.sessions.waitFor(hostname, SOON.timeout, never)
    if (!session) throw new Error('no session came')
    const exchanges = () => client.output.text.split('SSH2_MSG_NEWKEYS received').length - 1
    const text = 'x'.repeat(200_000)
    while (exchanges() < 4) expect(await echoed(session, text)).toBe(text)
  })

  test('exchanges keys after rekeyMs, during a transfer and when idle', async () => {
    await using own = await startSshEdge({ rekeyMs: 100 })
    const hostname = freshHostname()
    own.routes.set(hostname, { authorizedKeys: [own.publicKey] })
    const client = own.ssh({ user: hostname, args: ['-v', '-N', '-R', `80:127.0.0.1:${echo.port}`] })
    const session = await own.sessions.waitFor(hostname, SOON.timeout, never)
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
      await vi.waitFor(() => expect(onTheWay).toBeLessThan(256 * 1024), SOON)
    }
    channel.end()
    expect(await over).toBe('closed')
    expect([onTheWay, returned.digest('hex')]).toEqual([0, sent.digest('hex')])

    const before = exchanges()
    await vi.waitFor(() => expect(exchanges()).toBeGreaterThan(before), SOON)
    expect(await echoed(session)).toBe('ping')
  })

  test('whose client is killed is recorded, and loses its channels', async () => {
    const { hostname, client, session } = await served()
    const open = openChannel(session)
    await vi.waitFor(() => expect(open.said).toEqual(['opened']), SOON)
    client.kill('SIGKILL')
    expect(await open.over).toBe('lost')
    await vi.waitFor(() => expect(recordsOf(hostname).at(-1)).toMatchObject({ type: 'disconnect' }), SOON)
    expect(edge.sessions.of(hostname)).toEqual([])
    expect(await openChannel(session).over).toBe('refused session_lost')
  })

  test('that does not respond is closed when a newer one connects, and the newer one serves', async () => {
    const { hostname, client, session } = await served()
    client.kill('SIGSTOP')
    const second = edge.ssh({ user: hostname, args: ['-N', '-R', `80:127.0.0.1:${echo.port}`] })
    await vi.waitFor(() => expect(edge.sessions.pick(hostname)?.id).not.toBe(session.id), SOON)
    const newer = edge.sessions.pick(hostname)
    if (!newer) throw new Error('no session')
    expect(await echoed(newer)).toBe('ping')
    await vi.waitFor(() => expect(edge.sessions.of(hostname)).toHaveLength(1), SOON)
    expect(recordsOf(hostname).at(-1)).toMatchObject({ type: 'disconnect', reason: 'replaced', sessionId: session.id })
    second.kill()
    await second.exited
  })

  test('that responds stays open after the edge’s event loop was blocked', async () => {
    const { hostname, session } = await served()
    const { promise, resolve } = Promise.withResolvers<undefined>()
    // After the block, the timers that check deadlines run before the socket is read.
    setImmediate(() => {
      edge.server.probe(hostname)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, DEFAULT_SSH_LIMITS.probeMs + 1_000)
      resolve(undefined)
    })
    await promise
    await vi.waitFor(() => expect(edge.sessions.heardAfter(session)).toBe(session.id), SOON)
    expect(await echoed(session)).toBe('ping')
  })

  test('shares the load with a newer session', async () => {
    const { hostname, session } = await served()
    const second = edge.ssh({ user: hostname, args: ['-N', '-R', `80:127.0.0.1:${echo.port}`] })
    await vi.waitFor(() => expect(edge.sessions.of(hostname)).toHaveLength(2), SOON)
    const [newer] = edge.sessions.of(hostname)
    if (!newer) throw new Error('no session')
    const busy = openChannel(newer)
    await vi.waitFor(() => expect(edge.sessions.pick(hostname)).toBe(session), SOON)
    busy.channel.destroy()
    second.kill()
    await second.exited
  })
})
