import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { type Client, type ConnectConfig } from 'ssh2'
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { sentences } from '../../../edge/ssh/sentences.ts'
import { string, uint32 } from '../../../edge/ssh/wire-format.ts'
import { protocolOf, sendMessage, socketOf, sshClient } from '../../support/edge/ssh2-client.ts'
import { freshHostname, startSshEdge } from '../../support/edge/ssh-edge.ts'
import { patient, SOON } from '../../support/patience.ts'

/** Invalid and excessive messages of clients, and the edge's responses. */

const TRIES = 3
// The time for a first forward is long, since most clients here request none.
const edge = await startSshEdge({ loginTries: TRIES, forwardGraceMs: patient(60_000) })
afterAll(() => edge[Symbol.asyncDispose]())

/** Internal members of ssh2's client, in addition to {@link protocolOf}. */
interface Inside {
  readonly _protocol: {
    readonly _cipher: { readonly outSeqno: number }
    readonly _handlers: { USERAUTH_FAILURE(): void }
  }
}
const inside = (client: Client) => (client as unknown as Inside)._protocol

interface LoggedIn {
  readonly client: Client
  readonly hostname: string
  readonly gone: Promise<unknown>
  /** Sequence numbers of the edge's SSH_MSG_UNIMPLEMENTED messages so far. */
  readonly unknown: readonly number[]
}

async function login(options: Partial<ConnectConfig> = {}): Promise<LoggedIn> {
  const hostname = freshHostname()
  edge.routes.set(hostname, { authorizedKeys: [edge.publicKey] })
  const unknown: number[] = []
  const client = sshClient()
  onTestFinished(() => void client.destroy())
  const gone = new Promise<void>((resolve) => {
    client.once('close', () => resolve())
  })
  client.on('error', () => client.destroy())
  client.connect({
    ...{ host: '127.0.0.1', port: edge.port, username: hostname, privateKey: readFileSync(edge.file('id')) },
    // ssh2 reports SSH_MSG_UNIMPLEMENTED in its debug output only.
    debug(line) {
      const number = /Received UNIMPLEMENTED \(seqno (\d+)\)/.exec(line)?.[1]
      if (number !== undefined) unknown.push(Number(number))
    },
    ...options,
  })
  await once(client, 'ready')
  return { client, hostname, gone, unknown }
}

/** Returns the reason in the last record of a client. */
const reasonOf = (hostname: string) => edge.records.findLast(({ tunnel }) => tunnel === `uid-${hostname}`)?.reason

/** Message types that are unknown, or invalid outside a key exchange. */
const UNKNOWN = [0, 8, 21, 30, 110, 192, 200, 255]

/** Sends messages of all {@link UNKNOWN} types. @returns their sequence numbers */
function sendUnknown(client: Client): number[] {
  return UNKNOWN.map((type) => {
    const number = inside(client)._cipher.outSeqno
    sendMessage(client, Buffer.of(type, 0, 0, 0, 1, 0x78))
    return number
  })
}

describe('a message of an unknown type', () => {
  test.each([
    { cipher: 'aes128-gcm@openssh.com', hmac: 'hmac-sha2-256' },
    { cipher: 'aes256-ctr', hmac: 'hmac-sha2-512-etm@openssh.com' },
    { cipher: 'aes128-ctr', hmac: 'hmac-sha2-256' },
    { cipher: 'chacha20-poly1305@openssh.com', hmac: 'hmac-sha2-256' },
  ] as const)(
    'gets SSH_MSG_UNIMPLEMENTED with its number under $cipher, before and after a key exchange',
    async ({ cipher, hmac }) => {
      const { client, unknown, hostname } = await login({ algorithms: { cipher: [cipher], hmac: [hmac] } })
      const sent = sendUnknown(client)
      await vi.waitFor(() => expect(unknown).toEqual(sent), SOON)
      protocolOf(client).rekey()
      await vi.waitFor(() => expect(protocolOf(client)._kexinit).toBeUndefined(), SOON)
      sent.push(...sendUnknown(client))
      await vi.waitFor(() => expect(unknown).toEqual(sent), SOON)
      await new Promise<void>((resolve, reject) => {
        client.forwardIn(hostname, 80, (error) => (error ? reject(error) : resolve()))
      })
    },
  )

  test('and an empty payload is ignored', async () => {
    const { client, unknown } = await login()
    sendMessage(client, Buffer.alloc(0))
    const sent = sendUnknown(client)
    await vi.waitFor(() => expect(unknown).toEqual(sent), SOON)
  })

  test('sent repeatedly, without reading responses, ends the connection', async () => {
    const { client, hostname, gone } = await login()
    const socket = socketOf(client)
    socket.pause()
    const connection = { isGone: false }
    void gone.then(() => (connection.isGone = true))
    for (let sent = 0; !connection.isGone && sent < 2_000_000; sent += 1) {
      sendMessage(client, Buffer.of(200))
      if (socket.writableNeedDrain) await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), gone])
    }
    expect(connection.isGone).toBe(true)
    // The edge has closed the socket; no deadline has ended the connection.
    await vi.waitFor(() => expect(reasonOf(hostname)).toBe('connection_lost'), SOON)
  })
})

const cut = uint32(1_000)

describe('a truncated message ends the connection:', () => {
  test.each([
    { what: 'a session without a number', message: [Buffer.of(90), string('session')] },
    { what: 'a session without a window', message: [Buffer.of(90), string('session'), uint32(1)] },
    { what: 'a session without a packet size', message: [Buffer.of(90), string('session'), uint32(1), uint32(1024)] },
    { what: 'a channel without a type', message: [Buffer.of(90), cut, uint32(1), uint32(1024), uint32(1024)] },
    { what: 'a confirmation without a window', message: [Buffer.of(91), uint32(0), uint32(1)] },
    { what: 'a confirmation without a packet size', message: [Buffer.of(91), uint32(0), uint32(1), uint32(1024)] },
    { what: 'a forward without a name', message: [Buffer.of(80), string('tcpip-forward'), Buffer.of(1), cut, uint32(80)] },
    { what: 'a request without a name', message: [Buffer.of(80), cut, Buffer.of(1)] },
    { what: 'a request on a channel without a name', message: [Buffer.of(98), uint32(0), cut, Buffer.of(1)] },
  ])('$what', async ({ message }) => {
    const { client, hostname, gone } = await login()
    sendMessage(client, Buffer.concat(message))
    await gone
    await vi.waitFor(() => expect(reasonOf(hostname)).toBe('protocol_error'), SOON)
  })
})

/** SSH_MSG_USERAUTH_REQUEST (RFC 4252, section 5). */
const asks = (...rest: Buffer[]) => Buffer.concat([Buffer.of(50), string('user-a'), string('ssh-connection'), ...rest])

/** Sends the message in place of a login, and again after each rejection. */
async function asked(message: Buffer) {
  const client = sshClient()
  onTestFinished(() => void client.destroy())
  const said = new Promise<string>((resolve) => client.once('error', ({ message: text }) => resolve(text)))
  let refused = 0
  client.connect({
    ...{ host: '127.0.0.1', port: edge.port, username: 'user-a' },
    authHandler() {
      inside(client)._handlers.USERAUTH_FAILURE = () => {
        refused += 1
        sendMessage(client, message)
      }
      sendMessage(client, message)
    },
  })
  return { said: await said, refused }
}

describe('a client that requests a login', () => {
  test.each([
    { how: 'by method none', message: asks(string('none')), answers: TRIES },
    { how: 'by keyboard-interactive', message: asks(string('keyboard-interactive'), string(''), string('')), answers: TRIES - 1 },
    { how: 'by an unsupported method', message: asks(string('gssapi-with-mic'), uint32(0)), answers: TRIES - 1 },
    {
      how: 'by its host key',
      message: asks(...['hostbased', 'ssh-ed25519', 'key', 'host', 'user', 'signature'].map((field) => string(field))),
      answers: TRIES - 1,
    },
    {
      how: 'with a change of password',
      message: asks(string('password'), Buffer.of(1), string('mt_a'), string('mt_b')),
      answers: TRIES - 1,
    },
  ])('$how has as many tries as with a key', async ({ message, answers }) => {
    const { said, refused } = await asked(message)
    expect({ said, refused }).toEqual({ said: sentences.tries, refused: answers })
  })

  test.each(['ssh-rsa', 'rsa-sha2-512', 'ecdsa-sha2-nistp256', 'ssh-ed25519-cert-v01@openssh.com', 'x'])(
    'with an Ed25519 key under the algorithm %s is rejected (RFC 4252, section 7)',
    async (name) => {
      const hostname = freshHostname()
      edge.routes.set(hostname, { authorizedKeys: [edge.publicKey] })
      const key = Buffer.from(edge.publicKey.split(' ')[1] ?? '', 'base64')
      const fields = [string(hostname), string('ssh-connection'), string('publickey'), Buffer.of(0), string(name), string(key)]
      expect(await asked(Buffer.concat([Buffer.of(50), ...fields]))).toEqual({ said: sentences.tries, refused: TRIES - 1 })
    },
  )

  test.each([
    { what: 'a truncated user name', message: [Buffer.of(50), cut, string('ssh-connection'), string('none')] },
    { what: 'a truncated key', message: [asks(string('publickey'), Buffer.of(0), string('ssh-ed25519'), cut)] },
  ])('with $what is disconnected', async ({ message }) => {
    expect(await asked(Buffer.concat(message))).toEqual({ said: sentences.protocol, refused: 0 })
  })
})

/** Encodes a packet without encryption (RFC 4253, section 6). */
function packet(payload: Uint8Array): Buffer {
  let padding = 8 - ((payload.length + 5) % 8)
  if (padding < 4) padding += 8
  return Buffer.concat([uint32(payload.length + 1 + padding), Buffer.of(padding), payload, randomBytes(padding)])
}

function keyExchangeOf(methods: string): Buffer {
  const cipher = 'aes128-gcm@openssh.com'
  const lists = [methods, 'ssh-ed25519', cipher, cipher, 'hmac-sha2-256', 'hmac-sha2-256', 'none', 'none', '', '']
  return packet(Buffer.concat([Buffer.of(20), randomBytes(16), ...lists.map((list) => string(list)), Buffer.alloc(5)]))
}

describe('an empty packet during the first key exchange', () => {
  const x = Buffer.from(generateKeyPairSync('x25519').publicKey.export({ format: 'jwk' }).x ?? '', 'base64url')
  const share = packet(Buffer.concat([Buffer.of(30), string(x)]))
  const empty = packet(Buffer.alloc(0))
  const [plain, strict] = ['curve25519-sha256', 'curve25519-sha256,kex-strict-c-v00@openssh.com'].map(keyExchangeOf)

  test.each([
    { does: 'ends a strict key exchange', packets: [strict, empty, share], ends: true },
    { does: 'ends a strict key exchange after the client’s share', packets: [strict, share, empty], ends: true },
    { does: 'ends a strict key exchange that begins after the packet', packets: [empty, strict, share], ends: true },
    { does: 'is ignored in a key exchange that is not strict', packets: [plain, empty, share], ends: false },
  ])('$does', async ({ packets, ends }) => {
    const socket = connect(edge.port, '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    socket.on('error', () => socket.destroy())
    let heard = Buffer.alloc(0)
    socket.on('data', (data) => (heard = Buffer.concat([heard, data])))
    socket.write(Buffer.concat([Buffer.from('SSH-2.0-x\r\n'), ...packets.map((each) => each ?? Buffer.alloc(0))]))
    const over = { yet: false }
    socket.once('close', () => (over.yet = true))
    // The edge answers the client's share with its own and SSH_MSG_NEWKEYS.
    const agreed = () => heard.includes(Buffer.of(0, 0, 0, 12, 10, 21))
    await vi.waitFor(() => expect(over.yet || agreed()).toBe(true), SOON)
    if (ends) await vi.waitFor(() => expect(over.yet).toBe(true), SOON)
    else expect(agreed()).toBe(true)
  })
})
