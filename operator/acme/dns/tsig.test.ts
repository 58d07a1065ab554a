import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { signed, type TsigKey, verify, wireName, words } from './tsig.ts'

const key: TsigKey = { name: 'mooring', algorithm: 'hmac-sha256', secret: Buffer.from('a secret of 32 bytes for the test') }
const NOW = new Date('2026-11-24T00:00:00Z')
const SECONDS = NOW.getTime() / 1_000

/** Update without records: header and zone (RFC 2136, section 2.2). */
const UPDATE = Buffer.concat([words(0x1234, 0x2800, 1, 0, 0, 0), wireName('example.test'), words(6, 1)])
const REQUEST = signed(UPDATE, key, NOW)
/** The positive response to it. */
const RESPONSE = Buffer.concat([words(0x1234, 0xa800, 1, 0, 0, 0), wireName('example.test'), words(6, 1)])

const time = (seconds: number) => words(0, Math.floor(seconds / 0x1_0000), seconds % 0x1_0000)

interface Signing {
  readonly secret?: Buffer
  readonly seconds?: number
  readonly error?: number
  readonly before?: Buffer
}

/** Signs a response as a server does, by RFC 8945, section 5.3. */
function answered({ secret = key.secret, seconds = SECONDS, error = 0, before = REQUEST.mac }: Signing): Buffer {
  const variables = [wireName('mooring'), words(255, 0, 0), wireName('hmac-sha256'), time(seconds), words(300, error, 0)]
  const mac = createHmac('sha256', secret)
    .update(Buffer.concat([words(before.length), before, RESPONSE, ...variables]))
    .digest()
  const data = Buffer.concat([wireName('hmac-sha256'), time(seconds), words(300, mac.length), mac, words(0x1234, error, 0)])
  const record = Buffer.concat([wireName('mooring'), words(250, 255, 0, 0, data.length), data])
  const bytes = Buffer.concat([RESPONSE, record])
  bytes.writeUInt16BE(1, 10)
  return bytes
}

test('a response that is signed with the key is accepted', () => {
  expect(() => verify(answered({}), REQUEST, key, NOW)).not.toThrow()
})

test.each([
  { what: 'is not signed', response: RESPONSE, message: 'its response is not signed' },
  { what: 'is signed with another secret', response: answered({ secret: Buffer.from('another') }), message: 'with another key' },
  { what: 'answers another request', response: answered({ before: Buffer.alloc(32) }), message: 'with another key' },
  { what: 'is old', response: answered({ seconds: SECONDS - 301 }), message: 'at another time' },
  { what: 'has BADTIME', response: answered({ error: 18 }), message: 'BADTIME: its clock' },
  { what: 'is cut', response: answered({}).subarray(0, 40), message: 'its response is no DNS message' },
])('a response that $what is rejected', ({ response, message }) => {
  expect(() => verify(response, REQUEST, key, NOW)).toThrow(message)
})

test('no cut or changed byte of a response is accepted', () => {
  const response = answered({})
  for (let at = 0; at < response.length; at += 1) {
    expect(() => verify(response.subarray(0, at), REQUEST, key, NOW)).toThrow()
  }
  // Bytes before this one are the id, which the exchange compares, and flags with the response code.
  for (let at = 12; at < RESPONSE.length; at += 1) {
    const changed = Buffer.from(response)
    changed.writeUInt8(changed.readUInt8(at) ^ 1, at)
    expect(() => verify(changed, REQUEST, key, NOW)).toThrow()
  }
})
