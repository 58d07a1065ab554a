import fc from 'fast-check'
import { expect, test, describe } from 'vitest'
import { Body, GatheredPayload, ChunkScanner } from './body.ts'

/** Payload that is gathered from each buffer of a chunked body. */
function gathered(text: string, size: number): string[] {
  const body = new Body('chunked')
  const bytes = Buffer.from(text, 'latin1')
  const parts: string[] = []
  for (let at = 0; at < bytes.length; at += size) {
    const piece = Buffer.from(bytes.subarray(at, at + size))
    const payload = new GatheredPayload()
    expect(body.take(piece, 0, payload)).toBe(piece.length)
    parts.push(payload.of(piece).toString('latin1'))
  }
  expect(body.done).toBe(true)
  return parts
}

test('chunks of one byte become one part of their buffer', () => {
  expect(gathered(`${'1\r\nx\r\n'.repeat(5_000)}0\r\n\r\n`, 65_536)).toEqual(['x'.repeat(5_000)])
})

test('a body is complete however it is divided into chunks and buffers', () => {
  const chunks = fc.array(fc.string({ minLength: 1, maxLength: 300 }), { maxLength: 20 })
  fc.assert(
    fc.property(chunks, fc.integer({ min: 1, max: 700 }), (texts, size) => {
      const parts = texts.map((text) => Buffer.from(text).toString('latin1'))
      const framed = parts.map((part) => `${part.length.toString(16)}\r\n${part}\r\n`).join('')
      expect(gathered(`${framed}0\r\n\r\n`, size).join('')).toBe(parts.join(''))
    }),
  )
})

test('a buffer of framing only has no payload', () => {
  const payload = new GatheredPayload()
  const piece = Buffer.from('5;extension\r\n')
  new Body('chunked').take(piece, 0, payload)
  expect(payload.of(piece)).toHaveLength(0)
})

/** Scans the bytes in buffers of this size. */
function scanned(text: string, size = text.length) {
  const scanner = new ChunkScanner()
  const bytes = Buffer.from(text, 'latin1')
  const parts: string[] = []
  const sink = {
    payload: (chunk: Buffer, start: number, end: number) => void parts.push(chunk.toString('latin1', start, end)),
  }
  let used = 0
  for (let at = 0; at < bytes.length && !scanner.done; at += size) {
    const piece = bytes.subarray(at, at + size)
    const end = scanner.scan(piece, 0, sink)
    if (end < 0) return { valid: false as const }
    used += end
  }
  return {
    valid: true as const,
    done: scanner.done,
    used,
    body: parts.join(''),
    bytes: scanner.payload,
    trailers: scanner.trailers,
  }
}

describe('a chunked body', () => {
  test.each([
    { does: 'of one chunk', text: '5\r\nhello\r\n0\r\n\r\n', body: 'hello' },
    { does: 'of several chunks', text: '5\r\nhello\r\nA\r\n0123456789\r\n000\r\n\r\n', body: 'hello0123456789' },
    { does: 'without payload', text: '0\r\n\r\n', body: '' },
    { does: 'with extensions', text: '5;a=b;c="x;\\"y"\r\nhello\r\n0;z\r\n\r\n', body: 'hello' },
    { does: 'with trailers', text: '1\r\na\r\n0\r\nX-T: 1\r\nY:\r\n\r\n', body: 'a' },
  ])('$does is read to its end, however it is cut', ({ text, body }) => {
    for (let size = 1; size <= text.length; size++) {
      expect(scanned(`${text}GET /`, size)).toMatchObject({
        valid: true,
        done: true,
        used: text.length,
        body,
        bytes: body.length,
      })
    }
  })

  test('has its trailers once it is complete', () => {
    const text = '0\r\nX-T: 1\r\nY:\r\n\r\n'
    const trailers = Array.from(text, (_, at) => scanned(text.slice(0, at + 1))).map((seen) => seen.valid && seen.trailers)
    expect(trailers).toEqual([...Array<string>(text.length - 1).fill(''), 'X-T: 1\r\nY:\r\n'])
  })

  test.each([
    '5\nhello\r\n0\r\n\r\n',
    '5\r\nhello\n0\r\n\r\n',
    '5\r\nhello0\r\n\r\n',
    '5\r\nhelloo\r\n0\r\n\r\n',
    ' 5\r\nhello\r\n0\r\n\r\n',
    '5 \r\nhello\r\n0\r\n\r\n',
    '5\r\rhello\r\n0\r\n\r\n',
    '0x5\r\nhello\r\n0\r\n\r\n',
    '+5\r\nhello\r\n0\r\n\r\n',
    '-1\r\n',
    '\r\nhello',
    'g\r\n',
    '80000000\r\n',
    '100000000\r\n',
    '000000005\r\nhello',
    '5;a=b\nX\r\nhello\r\n0\r\n\r\n',
    '5;a="\n"\r\nhello\r\n',
    '5;\x00\r\nhello\r\n',
    `5;${'a'.repeat(16_385)}\r\nhello`,
    '0\r\nX : y\r\n\r\n',
    '0\r\nX: y\n\r\n',
    '0\r\n\n',
    '0\r\nX: y\r\n z\r\n\r\n',
    '0\r\nContent-Length: 5\r\n\r\n',
    '0\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n',
    '0\r\nx_forwarded_for: 6.6.6.6\r\n\r\n',
    '0\r\nHost: a\r\n\r\n',
    '0\r\nProxy-Authorization: Basic eA==\r\n\r\n',
    '0\r\nProxy-Authenticate: Basic\r\n\r\n',
    '0\r\nWWW-Authenticate: Basic\r\n\r\n',
    '0\r\nHTTP2-Settings: AAMAAABk\r\n\r\n',
    `0\r\n${'a: b\r\n'.repeat(33)}\r\n`,
    `0\r\na: ${'b'.repeat(8_192)}\r\n\r\n`,
  ])('that can be read in two ways is refused, however it is cut: %j', (text) => {
    for (const size of [1, 2, 7, text.length]) expect(scanned(text, size)).toEqual({ valid: false })
  })

  test('keeps any payload unchanged', () => {
    const chunks = fc.array(fc.uint8Array({ minLength: 1, maxLength: 40 }), { maxLength: 8 })
    fc.assert(
      fc.property(chunks, fc.integer({ min: 1, max: 50 }), (parts, size) => {
        const texts = parts.map((part) => Buffer.from(part).toString('latin1'))
        const text = `${texts.map((part) => `${part.length.toString(16)}\r\n${part}\r\n`).join('')}0\r\n\r\n`
        expect(scanned(text, size)).toMatchObject({ valid: true, done: true, body: texts.join(''), used: text.length })
      }),
    )
  })

  test('has the same meaning however it is split', () => {
    const piece = fc.constantFrom(
      '0',
      '1',
      '5',
      'a',
      ';',
      '"',
      '\\',
      '\r\n',
      '\r',
      '\n',
      ' ',
      'hello',
      ':',
      '0\r\n\r\n',
      '5\r\nhello\r\n',
    )
    fc.assert(
      fc.property(fc.array(piece, { minLength: 1, maxLength: 12 }), fc.integer({ min: 1, max: 5 }), (pieces, size) => {
        const text = pieces.join('')
        expect(scanned(text, size)).toEqual(scanned(text))
      }),
      { numRuns: 2000 },
    )
  })
})
