import { readFileSync } from 'node:fs'
import { type Client, type ClientChannel, type ConnectConfig } from 'ssh2'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { sendMessage, socketOf, sshClient } from '../../support/edge/ssh2-client.ts'
import { openChannel } from '../../support/edge/channels.ts'
import { freshHostname, startSshEdge } from '../../support/edge/ssh-edge.ts'
import { SOON } from '../../support/patience.ts'

const edge = await startSshEdge({ channels: 20 })
const never = new AbortController().signal

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
  const client = sshClient()
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
  const session = await edge.sessions.waitFor(hostname, SOON.timeout, never)
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
  await vi.waitFor(() => expect(opened.received().toString()).toBe('alive'), SOON)
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
    await vi.waitFor(() => expect(opened.received().toString()).toBe('still here'), SOON)
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
    await vi.waitFor(() => expect(opened.received().toString()).toBe('still here'), SOON)
    first.close()
  })

  test('gets one forward; the edge rejects a second and keeps the connection', async () => {
    const { client, hostname, opened, stream } = await serving()
    expect(await forward(client, 'localhost')).toBeInstanceOf(Error)
    stream.end('still here')
    await vi.waitFor(() => expect(opened.received().toString()).toBe('still here'), SOON)
    await new Promise<void>(
      (resolve, reject) => void client.unforwardIn(hostname, 80, (error) => (error ? reject(error) : resolve())),
    )
    expect(edge.sessions.of(hostname)).toEqual([])
    expect(await forward(client, '')).toBeUndefined()
    await vi.waitFor(() => expect(edge.sessions.of(hostname)).toHaveLength(1), SOON)
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
    await vi.waitFor(() => expect(many.filter(({ said }) => said.length > 0)).toHaveLength(25), SOON)
    expect(many.filter(({ said }) => said[0] === 'refused prohibited').length).toBe(6)
    for (const { channel } of many) channel.destroy()
    await vi.waitFor(() => expect(session.channels).toBe(1), SOON)
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
    const session = await edge.sessions.waitFor(hostname, SOON.timeout, never)
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
      await vi.waitFor(() => expect(inside(client)._kexinit).toBeUndefined(), SOON)
    }
    stream.end('still here')
    await vi.waitFor(() => expect(opened.received().toString()).toBe('still here'), SOON)
  })

  test('that sends requests instead of its part of a key exchange is disconnected', async () => {
    // Without a forward the client would be disconnected for that on a busy machine.
    await using own = await startSshEdge({ rekeyBytes: 100_000, forwardGraceMs: 60_000 })
    const { client, gone } = await login({}, own)
    const socket = socketOf(client)
    const reason = () => own.records.at(-1)?.reason ?? undefined
    // SSH_MSG_GLOBAL_REQUEST (RFC 4254, section 4).
    const question = Buffer.concat([Buffer.of(80, 0, 0, 0, 1), Buffer.from('x'), Buffer.of(1)])
    // A paused client does not see that the edge starts a key exchange.
    socket.pause()
    for (let asked = 0; reason() === undefined && asked < 600_000; asked += 1) {
      sendMessage(client, question)
      if (socket.writableNeedDrain) await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), gone])
    }
    await vi.waitFor(() => expect(reason()).toBe('protocol_error'), SOON)
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
    const client = sshClient()
    const error = await new Promise<Error>((resolve) => {
      client.on('error', resolve)
      client.connect({ host: '127.0.0.1', port: edge.port, username: 'x', algorithms: { cipher: [cipher], kex: [kex] } })
    })
    expect(error.message).toContain('no matching')
  })
})
