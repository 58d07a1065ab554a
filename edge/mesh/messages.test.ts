import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { FrameError, PAYLOAD_BYTES } from './frames.ts'
import {
  encodeMessage,
  encodeOpen,
  parseHello,
  parseOpen,
  parseSessionChanges,
  type SessionEntry,
  SESSIONS_A_FRAME,
} from './messages.ts'

const entry = (): SessionEntry => ({
  ...{
    id: randomUUID(),
    hostname: '0123456789abcdef',
    clientIp: '2001:0db8:0000:0000:0000:0000:0000:0001%interface-of-a-long-name',
  },
  login: { authMethod: 'key', keyFingerprint: 'x'.repeat(128) },
  ...{ since: 1_795_270_000_000.123, heardAfter: randomUUID() },
})

test('the maximum number of sessions of a message fits a frame', () => {
  const message = { there: Array.from({ length: SESSIONS_A_FRAME }, entry), complete: true as const }
  const payload = encodeMessage(message)
  expect(payload.length).toBeLessThan(PAYLOAD_BYTES)
  expect(parseSessionChanges(payload)).toEqual(message)
})

test('an open frame is parsed as it was encoded', () => {
  const address = fc.oneof(fc.ipV4(), fc.ipV6(), fc.constant(''))
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 0xffff_ffff }), address, fc.integer({ min: 0, max: 65_535 }), (window, from, port) => {
      const open = { window, origin: { address: from, port }, session: randomUUID() }
      expect(parseOpen(encodeOpen(open))).toEqual(open)
    }),
  )
})

describe('an invalid message', () => {
  test.each([
    '',
    '{}',
    '[]',
    'null',
    '{"added":[{}]}',
    '{"removed":["x"]}',
    '{"__proto__":1}',
    JSON.stringify({ added: [{ ...entry(), hostname: 'UPPER' }] }),
    JSON.stringify({ added: [{ ...entry(), more: 1 }] }),
    JSON.stringify({ added: Array.from({ length: SESSIONS_A_FRAME + 1 }, entry) }),
  ])('%.40s is refused', (text) => {
    const parse = text === '{}' ? parseHello : parseSessionChanges
    expect(() => parse(Buffer.from(text))).toThrow(FrameError)
  })

  test('is rejected, whatever its bytes are', () => {
    for (const parse of [parseHello, parseSessionChanges, parseOpen]) {
      fc.assert(
        fc.property(fc.uint8Array({ minLength: 8, maxLength: 512 }), (bytes) => {
          try {
            parse(Buffer.from(bytes))
          } catch (error) {
            expect(error).toBeInstanceOf(FrameError)
          }
        }),
      )
    }
  })
})
