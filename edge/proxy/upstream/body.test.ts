import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Body, GatheredPayload } from './body.ts'

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
