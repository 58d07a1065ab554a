import { randomBytes } from 'node:crypto'
import { createRequire } from 'node:module'
import fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import type { OwnedProtocol } from './messages.ts'
import { ciphersReady, nativeCiphers } from './packets.ts'
import { readWholePackets } from './whole-packets.ts'

/** Functions of ssh2 that create ciphers after a key exchange. */
interface Ciphers {
  readonly CIPHER_INFO: Readonly<Record<string, object>>
  createCipher(config: object): { allocPacket(bytes: number): Buffer; encrypt(packet: Buffer): void }
  createDecipher(config: object): OwnedProtocol['_decipher']
}
const ssh2 = createRequire(import.meta.url)('ssh2/lib/protocol/crypto.js') as Ciphers

beforeAll(async () => {
  await ciphersReady
  if (!nativeCiphers) throw new Error('the native ciphers are missing: there is nothing to compare')
})

const CIPHER = 'aes128-gcm@openssh.com'
const PAYLOAD_AT = 5
const DATA = 94

interface Message {
  readonly type: number
  readonly channel: number
  /** Announced length of the data, relative to the real one. */
  readonly lie: number
  readonly bytes: number
  /** Whether the message handler is replaced, as during a key exchange. */
  readonly exchanging: boolean
  /** Whether the packet has no payload. */
  readonly empty?: boolean
  /** Result of the handler, for messages other than data. */
  readonly result?: number | false | 'thrown' | undefined
}

const messages = fc.array(
  fc.record({
    type: fc.oneof({ weight: 3, arbitrary: fc.constant(DATA) }, fc.constantFrom(2, 93, 95, 96)),
    channel: fc.constantFrom(0, 7, 0xffff_ffff),
    lie: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.integer({ min: -3, max: 3 })),
    bytes: fc.oneof(fc.nat(40), fc.nat(1_000), fc.constant(32_768)),
    exchanging: fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, fc.constant(true)),
    empty: fc.oneof({ weight: 9, arbitrary: fc.constant(false) }, fc.constant(true)),
    result: fc.oneof(
      { weight: 9, arbitrary: fc.constant(undefined) },
      fc.constantFrom(false as const, Infinity, 'thrown' as const),
    ),
  }),
  { maxLength: 12 },
)

const keys = () => ({ key: randomBytes(16), iv: randomBytes(12) })

/** Encrypts packets one after the other; the last has `padding` bytes of padding. */
function encrypted(sent: readonly Message[], { key, iv }: ReturnType<typeof keys>, padding?: number): Buffer {
  const parts: Buffer[] = []
  const onWrite = (part: Buffer) => parts.push(Buffer.from(part))
  const info = { cipherInfo: ssh2.CIPHER_INFO[CIPHER], cipherKey: key, cipherIV: Buffer.from(iv) }
  const cipher = ssh2.createCipher({ outbound: { seqno: 0, onWrite, ...info } })
  for (const [index, { type, channel, lie, bytes, empty }] of sent.entries()) {
    if (empty) {
      cipher.encrypt(cipher.allocPacket(0))
      continue
    }
    const packet = cipher.allocPacket(9 + bytes)
    packet[PAYLOAD_AT] = type
    packet.writeUInt32BE(channel, PAYLOAD_AT + 1)
    packet.writeUInt32BE((bytes + lie) >>> 0, PAYLOAD_AT + 5)
    packet.fill(index + 1, PAYLOAD_AT + 9, PAYLOAD_AT + 9 + bytes)
    if (padding !== undefined && index === sent.length - 1) packet[4] = padding
    cipher.encrypt(packet)
  }
  return Buffer.concat(parts)
}

interface Hearing {
  /** Whether {@link readWholePackets} is applied. */
  readonly whole: boolean
  /** Whether the client has logged in. */
  readonly accepted?: boolean
}

/** Events for messages that arrive in these chunks. */
function heard(
  pieces: readonly Buffer[],
  sent: readonly Message[],
  { key, iv }: ReturnType<typeof keys>,
  { whole, accepted = true }: Hearing,
) {
  const log: string[] = []
  const tell = (who: string, channel: number, data: Buffer) => {
    log.push(`${who} ${channel} ${data.length} ${[...new Set(data)].join()}`)
    choose()
  }
  /** Handles data as ssh2's own handler does. */
  const hear = (who: string) => (payload: Buffer) => {
    const bytes = payload.length >= 9 ? payload.readUInt32BE(5) : Infinity
    const { result } = sent[log.length] ?? {}
    if (payload[0] === DATA && bytes <= payload.length - 9) {
      tell(who, payload.readUInt32BE(1), payload.subarray(9, 9 + bytes))
      return undefined
    }
    tell(`${who} ${payload[0]}`, payload.length, payload)
    if (result === 'thrown') throw new Error('a handler fails')
    return result
  }
  const usual = hear('heard')
  const meanwhile = hear('meanwhile')
  const info = { decipherInfo: ssh2.CIPHER_INFO[CIPHER], decipherKey: key, decipherIV: Buffer.from(iv) }
  const decipher = ssh2.createDecipher({ inbound: { seqno: 0, onPayload: usual, ...info } })
  const owner = {
    accepted,
    events: { channels: { data: (channel: number, data: Buffer) => tell('heard', channel, data) } },
  }
  const protocol = { owner, _decipher: decipher, _onPayload: usual, _kex: { negotiated: { cs: { cipher: CIPHER } } } }
  const choose = () => (decipher._onPayload = sent[log.length]?.exchanging ? meanwhile : usual)
  choose()
  if (whole) readWholePackets(protocol as unknown as OwnedProtocol)
  try {
    for (const piece of pieces) {
      // Parses as Protocol.parse of ssh2 does.
      for (let at = 0; at < piece.length;) at = decipher.decrypt(piece, at, piece.length) ?? piece.length
    }
  } catch {
    return [...log, 'ended']
  }
  return [...log, `${decipher.inSeqno} came`]
}

/** Splits bytes at these shares of their length. Each part has memory of its own, because it is decrypted in place. */
function cut(all: Buffer, shares: readonly number[]): Buffer[] {
  const ends = shares.map((share) => Math.floor(share * all.length)).toSorted((one, other) => one - other)
  return [...ends, all.length].map((end, index) => Buffer.from(all.subarray(ends[index - 1] ?? 0, end)))
}

test('packets cause the same events, however they are split', () => {
  const shares = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 4 })
  fc.assert(
    fc.property(messages, shares, fc.boolean(), (sent, at, accepted) => {
      const secret = keys()
      const all = encrypted(sent, secret)
      expect(heard(cut(all, at), sent, secret, { whole: true, accepted })).toEqual(
        heard(cut(all, at), sent, secret, { whole: false, accepted }),
      )
      if (sent.every(({ result }) => result === undefined))
        expect(heard([Buffer.from(all)], sent, secret, { whole: true })).toHaveLength(sent.length + 1)
    }),
    { numRuns: 500 },
  )
})

const one: Message = { type: DATA, channel: 1, lie: 0, bytes: 100, exchanging: false }

test('a flipped bit anywhere ends the connection, once the announced bytes have arrived', () => {
  const secret = keys()
  const all = encrypted([one, one], secret)
  for (let at = all.length / 2; at < all.length; at++) {
    const wrong = Buffer.from(all)
    wrong[at] = (wrong[at] ?? 0) ^ 1
    const told = heard([Buffer.from(wrong)], [one, one], secret, { whole: true })
    expect(told, `byte ${at}`).toEqual(heard([wrong], [one, one], secret, { whole: false }))
    expect(told).toHaveLength(2)
    if (at >= all.length / 2 + 4) expect(told.at(-1)).toBe('ended')
  }
})

test('padding longer than its packet ends the connection', () => {
  const secret = keys()
  const small = { ...one, bytes: 10 }
  expect(heard([encrypted([small], secret, 200)], [small], secret, { whole: true })).toEqual(['ended'])
})
