import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { Client, type ClientChannel, type ConnectConfig } from 'ssh2'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { sentences } from '../../../edge/ssh/sentences.ts'
import { sendMessage, socketOf } from '../../support/edge/ssh2-client.ts'
import { openChannel } from '../../support/edge/channels.ts'
import { freshHostname, startSshEdge } from '../../support/edge/ssh-edge.ts'

const edge = await startSshEdge({ channels: 20 })
const never = new AbortController().signal
const soon = { timeout: 10_000, interval: 10 }

/** Internal protocol object of ssh2's client, which can send messages that no correct client sends. */
interface Inside {
  readonly _protocol: {
    channelData(channel: number, data: Buffer): void
    channelWindowAdjust(channel: number, bytes: number): void
    channelClose(channel: number): void
    tcpipForward(host: string, port: number, wantReply: boolean): void
    authPassword(user: string, password: string): void
    session(channel: number, window: number, maxPacket: number): void
    rekey(): void
    /** Set during a key exchange. */
    readonly _kexinit: Buffer | undefined
  }
}
const inside = (client: Client) => (client as unknown as Inside)._protocol

interface Login {
  readonly client: Client
  readonly hostname: string
  readonly gone: Promise<unknown>
}

/** Logs in a client by key to a new tunnel. */
async function login(options: Partial<ConnectConfig> = {}, at = edge): Promise<Login> {
  const hostname = freshHostname()
  at.routes.set(hostname, { authorizedKeys: [at.publicKey] })
  const client = new Client()
  onTestFinished(() => void client.destroy())
  client.on('error', () => client.destroy())
  const gone = new Promise<void>((resolve) => {
    client.once('close', () => resolve())
  })
  await new Promise((resolve) => {
    client.once('ready', () => resolve(undefined))
    client.connect({
      host: '127.0.0.1',
      port: at.port,
      username: hostname,
      privateKey: readFileSync(at.file('id')),
      ...options,
    })
  })
  return { client, hostname, gone }
}

function forward(client: Client, host: string): Promise<Error | undefined> {
  return new Promise((resolve) => {
    client.forwardIn(host, 80, (error) => resolve(error))
  })
}

/** Logs in a client that serves, and opens a channel. `stream` is the client's end of it. */
async function serving() {
  const { client, hostname, gone } = await login()
  const accepted = new Promise<ClientChannel>((resolve) => client.once('tcp connection', (_, accept) => resolve(accept())))
  await forward(client, hostname)
  const session = await edge.sessions.waitFor(hostname, 5_000, never)
  if (!session) throw new Error('no session')
  const opened = openChannel(session)
  return { client, hostname, gone, session, opened, stream: await accepted }
}

const reasonOf = (hostname: string) => edge.records.findLast(({ tunnel }) => tunnel === `uid-${hostname}`)?.reason
const idOf = (stream: ClientChannel) => (stream as unknown as { outgoing: { id: number } }).outgoing.id

/** Expects that the edge still serves another client. */
async function stillServes(): Promise<void> {
  const { opened, stream } = await serving()
  stream.end('alive')
  await vi.waitFor(() => expect(opened.received().toString()).toBe('alive'), soon)
}

describe('a client', () => {
  test('that sends more than the window allows is disconnected', async () => {
    const { client, hostname, gone, opened, stream } = await serving()
    opened.channel.pause()
    for (let sent = 0; sent < 64; sent += 1) inside(client).channelData(idOf(stream), Buffer.alloc(32 * 1024))
    await gone
    expect(await opened.over).toBe('lost')
    expect(opened.received()).toHaveLength(0)
    expect(reasonOf(hostname)).toBe('protocol_error')
    await stillServes()
  })

  test('that sends data on an unknown channel is disconnected', async () => {
    const { client, hostname, gone } = await serving()
    inside(client).channelData(4_000_000_000, Buffer.from('x'))
    await gone
    expect(reasonOf(hostname)).toBe('protocol_error')
  })

  test('that adjusts and closes unknown channels stays connected', async () => {
    const { client, opened, stream } = await serving()
    inside(client).channelWindowAdjust(77, 5)
    inside(client).channelClose(78)
    stream.end('still here')
    await vi.waitFor(() => expect(opened.received().toString()).toBe('still here'), soon)
  })

  test('gets one session channel; the edge rejects a second and keeps the connection', async () => {
    const { client, opened, stream } = await serving()
    const first = await new Promise<ClientChannel>((resolve, reject) => {
      client.shell((error, channel) => (error ? reject(error) : resolve(channel)))
    })
    const second = await new Promise<Error | undefined>((resolve) => void client.shell((error) => resolve(error)))
    expect(second?.message).toContain('one session at a time')
    for (let id = 500; id < 520; id += 1) inside(client).session(id, 1024, 1024)
    stream.end('still here')
    await vi.waitFor(() => expect(opened.received().toString()).toBe('still here'), soon)
    first.close()
  })

  test('gets one forward; the edge rejects a second and keeps the connection', async () => {
    const { client, hostname, opened, stream } = await serving()
    expect(await forward(client, 'localhost')).toBeInstanceOf(Error)
    stream.end('still here')
    await vi.waitFor(() => expect(opened.received().toString()).toBe('still here'), soon)
    await new Promise<void>(
      (resolve, reject) => void client.unforwardIn(hostname, 80, (error) => (error ? reject(error) : resolve())),
    )
    expect(edge.sessions.of(hostname)).toEqual([])
    expect(await forward(client, '')).toBeUndefined()
    await vi.waitFor(() => expect(edge.sessions.of(hostname)).toHaveLength(1), soon)
  })

  test('cannot open connections from the edge (direct-tcpip)', async () => {
    const { client } = await login()
    const error = await new Promise<Error | undefined>(
      (resolve) => void client.forwardOut('a', 1, '127.0.0.1', 22, (refused) => resolve(refused)),
    )
    expect(error?.message).toContain('forwards remote ports (-R) only')
  })

  test('gets no channels above its limit until others close', async () => {
    const { client, session } = await serving()
    client.on('tcp connection', (_, accept) => void accept())
    const many = Array.from({ length: 25 }, () => openChannel(session))
    await vi.waitFor(() => expect(many.filter(({ said }) => said.length > 0)).toHaveLength(25), soon)
    expect(many.filter(({ said }) => said[0] === 'refused prohibited').length).toBe(6)
    for (const { channel } of many) channel.destroy()
    await vi.waitFor(() => expect(session.channels).toBe(1), soon)
  })

  test('that logs in again after its login is disconnected', async () => {
    const { client, hostname, gone } = await login()
    inside(client).authPassword(hostname, 'mt_again')
    await gone
    expect(reasonOf(hostname)).toBe('protocol_error')
  })

  test('that does not answer a channel open occupies one channel', async () => {
    const { client, hostname } = await login()
    await forward(client, hostname)
    // ssh2 refuses channels without a listener. With an empty listener, it does not answer.
    client.on('tcp connection', () => undefined)
    const session = await edge.sessions.waitFor(hostname, 5_000, never)
    if (!session) throw new Error('no session')
    const opened = openChannel(session)
    opened.channel.write(Buffer.from('early'))
    opened.channel.destroy()
    expect(await opened.over).toBe('lost')
    expect(session.channels).toBe(1)
    client.destroy()
  })

  test('that starts key exchanges repeatedly is served between them', async () => {
    const { client, opened, stream } = await serving()
    for (let round = 0; round < 20; round += 1) {
      inside(client).rekey()
      await vi.waitFor(() => expect(inside(client)._kexinit).toBeUndefined(), soon)
    }
    stream.end('still here')
    await vi.waitFor(() => expect(opened.received().toString()).toBe('still here'), soon)
  })

  test('that sends requests instead of its part of a key exchange is disconnected', async () => {
    await using own = await startSshEdge({ rekeyBytes: 100_000 })
    const { client, gone } = await login({}, own)
    const socket = socketOf(client)
    const isOver = () => own.records.at(-1)?.reason === 'protocol_error'
    // SSH_MSG_GLOBAL_REQUEST (RFC 4254, section 4).
    const question = Buffer.concat([Buffer.of(80, 0, 0, 0, 1), Buffer.from('x'), Buffer.of(1)])
    // A paused client does not see that the edge starts a key exchange.
    socket.pause()
    for (let asked = 0; !isOver() && asked < 600_000; asked += 1) {
      sendMessage(client, question)
      if (socket.writableNeedDrain) await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), gone])
    }
    await vi.waitFor(() => expect(isOver()).toBe(true), soon)
    socket.resume()
    await gone
  })

  test.each([
    { cipher: 'aes128-gcm@openssh.com', hmac: 'hmac-sha2-256' },
    { cipher: 'aes256-ctr', hmac: 'hmac-sha2-512-etm@openssh.com' },
    { cipher: 'chacha20-poly1305@openssh.com', hmac: 'hmac-sha2-256' },
  ] as const)('that supports $cipher only is served', async ({ cipher, hmac }) => {
    const { client, hostname } = await login({ algorithms: { cipher: [cipher], hmac: [hmac] } })
    expect(await forward(client, hostname)).toBeUndefined()
  })

  test.each([
    { cipher: 'aes128-cbc', kex: 'curve25519-sha256' },
    { cipher: 'aes128-gcm@openssh.com', kex: 'diffie-hellman-group1-sha1' },
  ] as const)('that supports $cipher and $kex only is rejected', async ({ cipher, kex }) => {
    const client = new Client()
    const error = await new Promise<Error>((resolve) => {
      client.on('error', resolve)
      client.connect({ host: '127.0.0.1', port: edge.port, username: 'x', algorithms: { cipher: [cipher], kex: [kex] } })
    })
    expect(error.message).toContain('no matching')
  })
})

describe('a client without a login', () => {
  const kexinit = (length: number) => Buffer.concat([Buffer.of(0, 0, 0, length, 4, 20), Buffer.alloc(length - 2)])

  test.each([
    { does: 'speaks HTTP', bytes: Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n') },
    { does: 'identifies itself with protocol 1.5', bytes: Buffer.from('SSH-1.5-old\r\n') },
    { does: 'sends a packet that is too long', bytes: Buffer.from('SSH-2.0-x\r\n\x7f\xff\xff\xff\x04', 'latin1') },
    { does: 'sends an empty KEXINIT', bytes: Buffer.concat([Buffer.from('SSH-2.0-x\r\n'), kexinit(12)]) },
    {
      does: 'requests a login before the key exchange',
      bytes: Buffer.concat([Buffer.from('SSH-2.0-x\r\n'), Buffer.of(0, 0, 0, 12, 4, 50, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)]),
    },
    { does: 'sends a line without an end', bytes: Buffer.alloc(20_000, 'a') },
    { does: 'sends zeros', bytes: Buffer.alloc(100_000) },
  ])('that $does is disconnected', async ({ bytes }) => {
    const socket = connect(edge.port, '127.0.0.1')
    socket.on('error', () => socket.destroy())
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.resume()
    socket.write(bytes)
    await closed
  })

  test('that guesses from many addresses is rejected; the journal has some of the failures, and the metric all', async () => {
    await using own = await startSshEdge({ refusalsPerTunnel: 5 })
    const hostname = freshHostname()
    own.routes.set(hostname, { authorizedKeys: [own.publicKey] })
    const guess = (localAddress: string) =>
      new Promise<string>((resolve) => {
        const client = new Client()
        client.once('ready', () => resolve('in'))
        client.once('error', (error) => resolve(error.message))
        client.connect({ host: '127.0.0.1', port: own.port, username: hostname, password: 'mt_guess', localAddress })
      })
    const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => guess(`127.3.0.${index + 1}`)))
    expect(new Set(answers)).toEqual(new Set(['All configured authentication methods failed']))
    const counted = async () => (await own.registry.getSingleMetric('mooring_ssh_refused_logins_total')?.get())?.values
    await vi.waitFor(async () => expect(await counted()).toEqual([{ labels: { reason: 'no_credential' }, value: 20 }]), soon)
    expect(own.records.map(({ type }) => type)).toEqual(Array.from({ length: 5 }, () => 'refused'))
  })

  test('that opens too many connections gets the reason on the next one', async () => {
    await using own = await startSshEdge({ handshakesPerSource: 2 })
    const idle = [1, 2].map(() => connect(own.port, '127.0.0.1'))
    await Promise.all(idle.map((socket) => new Promise((resolve) => socket.once('data', resolve))))
    const third = connect(own.port, '127.0.0.1')
    const said = await new Promise<string>((resolve) => {
      let text = ''
      third.on('data', (data) => (text += data.toString('latin1')))
      third.once('close', () => resolve(text))
    })
    expect(said).toContain('too many connections from your address')
    for (const socket of idle) socket.destroy()
  })

  test('that starts a second key exchange before its login is disconnected', async () => {
    const client = new Client()
    onTestFinished(() => void client.destroy())
    const said = new Promise<string>((resolve) => client.once('error', ({ message }) => resolve(message)))
    client.once('handshake', () => inside(client).rekey())
    client.connect({ host: '127.0.0.1', port: edge.port, username: freshHostname(), authHandler: () => undefined })
    expect(await said).toContain(sentences.protocol)
  })

  test('from a source with many key exchanges and no login waits in a queue; successful logins do not count', async () => {
    // The queue serves 0 handshakes a second.
    await using own = await startSshEdge({ unfinishedPerSource: 3, slowHandshakesPerSecond: 0, loginGraceMs: 300 })
    const username = freshHostname()
    own.routes.set(username, { authorizedKeys: [own.publicKey] })
    const to = { host: '127.0.0.1', port: own.port, username }
    const attempt = async (options: Partial<ConnectConfig>, until: 'ready' | 'handshake') => {
      const client = new Client()
      onTestFinished(() => void client.destroy())
      const heard = new Promise<string>((resolve) => {
        client.once('ready', () => resolve('ready'))
        if (until === 'handshake') client.once('handshake', () => resolve('handshake'))
        client.once('error', ({ message }) => resolve(message)).once('close', () => resolve('closed'))
      })
      client.connect({ ...to, ...options })
      const said = await heard
      client.destroy()
      return said
    }
    const privateKey = readFileSync(own.file('id'))
    for (let count = 0; count < 4; count++) expect(await attempt({ privateKey }, 'ready')).toBe('ready')
    const heard: string[] = []
    await vi.waitFor(async () => {
      heard.push(await attempt({ authHandler: () => undefined }, 'handshake'))
      expect(heard.at(-1)).toBe('closed')
    }, soon)
    expect(heard.slice(0, 3)).toEqual(['handshake', 'handshake', 'handshake'])
  })

  test('that is rejected and stays connected gets the reason on the first three connections, and none on later ones', async () => {
    await using own = await startSshEdge({ handshakesPerSource: 0, farewells: 3 })
    const sockets = Array.from({ length: 10 }, () => connect({ port: own.port, host: '127.0.0.1', allowHalfOpen: true }))
    const said = sockets.map((socket) => {
      socket.on('error', () => socket.destroy())
      const ended = Promise.race([once(socket, 'end'), once(socket, 'close')])
      return new Promise<string>((resolve) => {
        let text = ''
        socket.on('data', (data) => (text += data.toString('latin1')))
        void ended.then(() => resolve(text))
      })
    })
    const informed = (await Promise.all(said)).filter((text) => text.includes('too many connections from your address'))
    expect(informed).toHaveLength(3)
    for (const socket of sockets) socket.destroy()
  })
})
