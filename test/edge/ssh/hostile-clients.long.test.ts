import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { honest, type Honest } from '../../support/edge/attack-tools.ts'
import { answered } from '../../support/edge/raw-http.ts'
import { handlersOf, KEY, logIn, newKey, protocolOf, sendMessage, socketOf, sshClient } from '../../support/edge/ssh2-client.ts'
import { startWholeEdge, type WholeEdge } from '../../support/edge/whole-edge.ts'
import { freshHostname, temporaryPassword } from '../../support/edge/ssh-edge.ts'
import { patient, SOON } from '../../support/patience.ts'

const MIB = 1024 * 1024
/** Long enough for the logins of tests; slow clients are disconnected after it. */
const LOGIN_GRACE_MS = 10_000

let edge: WholeEdge
let other: Honest
beforeAll(async () => {
  edge = await startWholeEdge({
    ssh: {
      ...{ loginGraceMs: LOGIN_GRACE_MS, loginTries: 6, failedPerSource: 20, failedPerSourceAndTunnel: 10 },
      // Some clients never request a forward.
      forwardGraceMs: patient(60_000),
    },
  })
  other = await honest(edge)
})
afterAll(async () => {
  expect(edge.logged()).toBe('')
  other[Symbol.dispose]()
  await edge[Symbol.asyncDispose]()
})

const memoryOf = async () => {
  const { heap, buffers } = await edge.usage()
  return heap + buffers
}

/** Number of source addresses used. Each test has its own, so that limits by source do not affect the next test. */
let source = 0
const freshSource = () => `127.1.${Math.floor(++source / 250)}.${(source % 250) + 1}`

const text = (value: string): Buffer => {
  const bytes = Buffer.from(value)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(bytes.length)
  return Buffer.concat([length, bytes])
}
const number = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/** SSH_MSG_CHANNEL_OPEN (RFC 4254, section 5.1). */
const channelOpen = (type: string, id: number, rest = Buffer.alloc(0)) =>
  Buffer.concat([Buffer.of(90), text(type), number(id), number(1024), number(1024), rest])

describe('other tunnels are served while a client', () => {
  test.each(['session', 'direct-tcpip', 'x11', 'forwarded-tcpip', 'no-such-channel'])(
    'opens 10,000 channels of type %s',
    async (type) => {
      using hostile = await logIn(edge, { localAddress: freshSource() })
      const before = await memoryOf()
      const rest =
        type === 'direct-tcpip' ? Buffer.concat([text('127.0.0.1'), number(22), text('127.0.0.1'), number(1)]) : Buffer.alloc(0)
      const origin =
        type === 'forwarded-tcpip' || type === 'x11'
          ? Buffer.concat([text('a'), number(80), text('b'), number(1)])
          : Buffer.alloc(0)
      for (let id = 0; id < 10_000; id++) sendMessage(hostile.client, channelOpen(type, id, Buffer.concat([rest, origin])))
      await other.expectServed()
      expect((await memoryOf()) - before).toBeLessThan(16 * MIB)
    },
  )

  test('sends requests without reading responses, which disconnects it', async () => {
    using hostile = await logIn(edge, { localAddress: freshSource() })
    const before = await memoryOf()
    const socket = socketOf(hostile.client)
    socket.pause()
    const gone = { yet: false }
    void hostile.gone.then(() => (gone.yet = true))
    const request = channelOpen('direct-tcpip', 1, Buffer.concat([text('a'), number(1), text('b'), number(1)]))
    let most = 0
    for (let round = 0; !gone.yet; round++) {
      for (let count = 0; count < 2_000; count++) sendMessage(hostile.client, request)
      if (round % 20 === 0) most = Math.max(most, (await memoryOf()) - before)
      // Waits for the socket, to bound the memory of this process.
      if (socket.writableLength > MIB) await Promise.race([once(socket, 'drain'), hostile.gone])
      else await new Promise(setImmediate)
    }
    expect(most).toBeLessThan(48 * MIB)
    await other.expectServed()
  })

  test('reads nothing of its visitors’ uploads, which stops them', async () => {
    using hostile = await logIn(edge, { localAddress: freshSource() })
    await hostile.serve((channel) => channel.pause())
    const before = await memoryOf()
    socketOf(hostile.client).pause()
    const body = Buffer.alloc(MIB)
    const visitors = Array.from({ length: 50 }, () => {
      const visitor = connect(edge.ports.http, '127.0.0.1')
      visitor.on('error', () => visitor.destroy())
      visitor.write(`POST / HTTP/1.1\r\nHost: ${hostile.hostname}.${edge.domain}\r\nContent-Length: 100000000\r\n\r\n`)
      for (let count = 0; count < 20; count++) visitor.write(body)
      return visitor
    })
    await other.expectServed()
    await vi.waitFor(() => expect(visitors.every(({ writableNeedDrain }) => writableNeedDrain)).toBe(true), SOON)
    expect((await memoryOf()) - before).toBeLessThan(48 * MIB)
    for (const visitor of visitors) visitor.destroy()
  })

  test('accepts packets of one byte only, which makes its requests 502', async () => {
    using hostile = await logIn(edge, { localAddress: freshSource() })
    const { client, hostname } = hostile
    const confirmed: number[] = []
    handlersOf(client).CHANNEL_OPEN = (_protocol, { sender }) => {
      confirmed.push(sender)
      // SSH_MSG_CHANNEL_OPEN_CONFIRMATION (RFC 4254, section 5.1): a huge window, and packets of a byte.
      sendMessage(client, Buffer.concat([Buffer.of(91), number(sender), number(1), number(0x7fff_ffff), number(1)]))
    }
    await new Promise<void>((resolve, reject) => {
      client.forwardIn(hostname, 80, (error) => (error ? reject(error) : resolve()))
    })
    const upload = `POST / HTTP/1.1\r\nHost: ${hostname}.${edge.domain}\r\nContent-Length: ${4 * MIB}\r\n\r\n`
    expect(await answered(edge.ports.http, upload + 'x'.repeat(64 * 1024))).toMatch(/^HTTP\/1\.1 502 [^]*upstream_refused/)
    expect(confirmed).toHaveLength(1)
  })

  test('sends single bytes between large ignored messages to a visitor that does not read', async () => {
    using hostile = await logIn(edge, { localAddress: freshSource() })
    const { client, hostname } = hostile
    let window = 0
    const accepted = new Promise<number>((resolve) => {
      handlersOf(client).CHANNEL_OPEN = (_protocol, info) => {
        window = info.window
        resolve(info.sender)
      }
    })
    handlersOf(client).CHANNEL_WINDOW_ADJUST = (_protocol, _channel, bytes) => (window += bytes)
    await new Promise<void>((resolve, reject) => {
      client.forwardIn(hostname, 80, (error) => (error ? reject(error) : resolve()))
    })
    const visitor = connect(edge.ports.http, '127.0.0.1').pause()
    visitor.on('error', () => visitor.destroy())
    visitor.write(`GET / HTTP/1.1\r\nHost: ${hostname}.${edge.domain}\r\n\r\n`)
    const channel = await accepted
    // SSH_MSG_CHANNEL_OPEN_CONFIRMATION and CHANNEL_DATA (RFC 4254, sections 5.1 and 5.2), and SSH_MSG_IGNORE (RFC 4253, section 11.2).
    sendMessage(client, Buffer.concat([Buffer.of(91), number(channel), number(1), number(0x7fff_ffff), number(32_768)]))
    const say = (data: string) => {
      window -= data.length
      sendMessage(client, Buffer.concat([Buffer.of(94), number(channel), text(data)]))
    }
    const ignored = Buffer.concat([Buffer.of(2), text('x'.repeat(32_000))])
    const heard = () =>
      new Promise<void>((resolve) => {
        client.unforwardIn('unknown', 81, () => resolve())
      })
    say('HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n')
    // Fills the buffers on the way to the visitor.
    while (window > 32_768) {
      say('x'.repeat(8_192))
      if (window <= 32_768) await heard()
    }
    const before = await memoryOf()
    const socket = socketOf(client)
    for (let round = 0; round < 4_000; round++) {
      say('x')
      sendMessage(client, ignored)
      sendMessage(client, ignored)
      if (socket.writableNeedDrain) await once(socket, 'drain')
    }
    await heard()
    expect((await memoryOf()) - before).toBeLessThan(16 * MIB)
    await other.expectServed()
    visitor.destroy()
  })

  test('starts 50 key exchanges', async () => {
    using hostile = await logIn(edge, { localAddress: freshSource() })
    for (let round = 0; round < 50; round++) {
      protocolOf(hostile.client).rekey()
      await vi.waitFor(() => expect(protocolOf(hostile.client)._kexinit).toBeUndefined(), { ...SOON, interval: 5 })
    }
    await other.expectServed()
  })
})

describe('clients without a login', () => {
  test('that are slow in their handshakes are disconnected in time, and others log in meanwhile', async () => {
    const before = await memoryOf()
    const slow = Array.from({ length: 200 }, (_, index) => {
      const socket = connect({ host: '127.0.0.1', port: edge.ports.ssh, localAddress: `127.2.0.${index + 1}` })
      socket.on('error', () => socket.destroy())
      socket.resume()
      const dribble = setInterval(() => socket.writable && socket.write(Buffer.of(0)), 100)
      // The identification, and the begin of a KEXINIT of 1,028 bytes.
      socket.write('SSH-2.0-slow\r\n\0\0\x04\x04\x06\x14')
      return once(socket, 'close').finally(() => clearInterval(dribble))
    })
    using honest = await logIn(edge, { localAddress: freshSource() })
    expect(honest.client).toBeDefined()
    expect((await memoryOf()) - before).toBeLessThan(32 * MIB)
    await Promise.all(slow)
  })

  test('that offer 50 keys may try fewer than 25, which count as one failed login', async () => {
    const localAddress = freshSource()
    const hostname = freshHostname()
    await edge.set(hostname, { authorizedKeys: [KEY.publicKey] })
    const keys = Array.from({ length: 50 }, () => newKey().privateKey)
    const client = sshClient()
    let tried = 0
    const said = await new Promise<Error>((resolve) => {
      client.once('error', resolve)
      client.connect({
        ...{ host: '127.0.0.1', port: edge.ports.ssh, username: hostname, localAddress },
        authHandler: (_left, _partial, next) => {
          const key = keys[tried++]
          next(key === undefined ? (false as never) : { type: 'publickey', username: hostname, key })
        },
      })
    })
    expect(said.message).not.toBe('')
    expect(tried).toBeLessThan(25)
    // After one failed login, the right key is accepted.
    using right = await logIn(edge, { username: hostname, localAddress })
    expect(right.hostname).toBe(hostname)
  })

  test('that guess passwords are rejected after ten, also with the right one, and other sources are not', async () => {
    const { password, routed } = temporaryPassword(60_000, 'mt_guessable')
    const hostname = freshHostname()
    await edge.set(hostname, {}, [routed])
    const localAddress = freshSource()
    const guess = (guessed: string, from = localAddress) =>
      new Promise<string>((resolve) => {
        const client = sshClient()
        client.once('ready', () => {
          client.destroy()
          resolve('in')
        })
        client.once('error', (error) => resolve(error.message))
        client.connect({ host: '127.0.0.1', port: edge.ports.ssh, username: hostname, password: guessed, localAddress: from })
      })
    for (let count = 0; count < 10; count++)
      expect(await guess(`mt_${count}`)).toContain('All configured authentication methods failed')
    // The edge no longer compares weak passwords from this source.
    expect(await guess(password)).toContain('too many failed logins')
    expect(await guess(password, freshSource())).toBe('in')
  })
})
