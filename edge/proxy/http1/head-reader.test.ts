import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Rejection } from '../../../shared/tunnel-decisions.ts'
import { HeadReader, HeadBuffer } from './head-reader.ts'
import { readRequestHead, type RequestHead } from '../head/request-head.ts'
import { BAD_LINE } from '../errors.ts'
import { MAX_HEAD } from '../head/fields.ts'

/** Reader that counts its parses and returns the text. */
function counting() {
  const read: string[] = []
  const reader = new HeadReader<string>((text, bytes) => {
    expect(Buffer.from(bytes).toString('latin1')).toBe(text)
    read.push(text)
    return text
  }, '')
  return { reader, read }
}

const bytes = (text: string) => Buffer.from(text, 'latin1')
const HEAD = 'GET /a HTTP/1.1\r\nHost: a.test\r\n'

describe('a repeated head', () => {
  test('is not parsed again, and the bytes after it are kept', () => {
    const { reader, read } = counting()
    expect(reader.push(bytes(`${HEAD}\r\n`))).toBe('whole')
    expect(reader.push(bytes(`${HEAD}\r\nrest`))).toBe('whole')
    expect({ head: reader.head, rest: reader.takeRest().toString(), read }).toEqual({ head: HEAD, rest: 'rest', read: [HEAD] })
  })

  test.each([
    { does: 'differs in its first byte', text: `PET /a HTTP/1.1\r\nHost: a.test\r\n` },
    { does: 'differs in its last', text: `GET /a HTTP/1.1\r\nHost: a.tesu\r\n` },
    { does: 'goes on', text: `${HEAD}Connection: close\r\n` },
    { does: 'is shorter', text: 'GET /a HTTP/1.1\r\n' },
  ])('is read when it $does', ({ text }) => {
    const { reader, read } = counting()
    reader.push(bytes(`${HEAD}\r\n`))
    expect(reader.push(bytes(`${text}\r\n`))).toBe('whole')
    expect(read).toEqual([HEAD, text])
  })

  test('is recognized when the memory of the first one was overwritten', () => {
    const { reader, read } = counting()
    const memory = bytes(`${HEAD}\r\n`)
    reader.push(memory)
    memory.write('PUT', 0, 'latin1')
    reader.push(memory)
    expect(read).toEqual([HEAD, HEAD.replace('GET', 'PUT')])
  })
})

/** Results of a reader for a message in chunks of this size. */
function readIn(size: number, message: Buffer, reader: HeadReader<RequestHead | Rejection>) {
  for (let at = 0; at < message.length; at += size) {
    const state = reader.push(message.subarray(at, at + size))
    if (state !== 'more') return { state, at, head: reader.head, rest: reader.takeRest().toString('latin1') }
  }
  return { state: 'more' }
}

test('heads are read as if each were the first, however they are split and repeated', () => {
  const head = fc.constantFrom(
    ...[
      HEAD,
      `${HEAD}A: b\r\n`,
      'POST / HTTP/1.1\r\nHost: b.test\r\nContent-Length: 3\r\n',
      'GET / HTTP/1.1\r\n',
      HEAD.repeat(2),
    ],
    `${HEAD}A: ${'b'.repeat(3_000)}\r\n`,
  )
  const before = fc.constantFrom('', '', '\r\n')
  const size = fc.oneof(fc.constant(9_999), fc.integer({ min: 1, max: 4_000 }))
  fc.assert(
    fc.property(fc.array(fc.tuple(before, head, size), { maxLength: 12 }), (heads) => {
      const kept = new HeadReader(readRequestHead, BAD_LINE)
      for (const [line, text, pieces] of heads) {
        const message = bytes(`${line}${text}\r\n`)
        expect(readIn(pieces, message, kept)).toEqual(readIn(pieces, message, new HeadReader(readRequestHead, BAD_LINE)))
      }
    }),
  )
})

test('a reader does not keep the buffer of a head', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const BLOCK = 64 * 1024
  const arrayBuffers = () => {
    collect()
    return process.memoryUsage().arrayBuffers
  }
  const before = arrayBuffers()
  const readers = Array.from({ length: 400 }, (_, index) => {
    const { reader } = counting()
    for (const body of ['', 'rest']) {
      const block = Buffer.allocUnsafeSlow(BLOCK)
      const length = block.write(`GET /${index}${body} HTTP/1.1\r\nHost: a.test\r\n\r\n${body}`, 100, 'latin1')
      expect(reader.push(block.subarray(100, 100 + length))).toBe('whole')
      expect(reader.takeRest().toString()).toBe(body)
    }
    return reader
  })
  // V8 frees such memory in the background after the collection.
  await expect.poll(() => arrayBuffers() - before, { timeout: 60_000 }).toBeLessThan((readers.length * BLOCK) / 10)
  expect(readers.every(({ isEmpty }) => isEmpty)).toBe(true)
})

function fed(text: string, size: number) {
  const head = new HeadBuffer()
  const bytes = Buffer.from(text, 'latin1')
  for (let at = 0; at < bytes.length; at += size) {
    const state = head.push(bytes.subarray(at, at + size))
    if (state === 'whole')
      return { state, text: head.text, rest: head.rest.toString('latin1') + bytes.toString('latin1', at + size) }
    if (state !== 'more') return { state }
  }
  return { state: 'more' }
}

test('a head is found however it is split, without the bytes after it', () => {
  const line = fc.stringMatching(/^[a-z: ]{1,80}$/)
  fc.assert(
    fc.property(
      fc.array(line, { minLength: 1, maxLength: 30 }),
      fc.string({ maxLength: 20 }),
      fc.integer({ min: 1, max: 3000 }),
      (lines, rest, size) => {
        const text = `${lines.join('\r\n')}\r\n`
        const after = Buffer.from(rest, 'utf8').toString('latin1')
        expect(fed(`${text}\r\n${after}`, size)).toEqual({ state: 'whole', text, rest: after })
      },
    ),
  )
})

test.each([
  { does: 'a bare LF is rejected at once', text: 'GET / HTTP/1.1\nHost', state: 'bad' },
  { does: 'an incomplete head above the limit is rejected', text: 'a'.repeat(MAX_HEAD + 2), state: 'large' },
  { does: 'a complete head above the limit is rejected', text: `${'a'.repeat(MAX_HEAD + 2)}\r\n\r\n`, state: 'large' },
])('$does', ({ text, state }) => {
  for (const size of [1024, text.length]) expect(fed(text, size)).toMatchObject({ state })
})

test.each([
  { does: 'one empty line before a head is skipped', text: '\r\nGET\r\n\r\n', head: 'GET\r\n' },
  { does: 'a second empty line is not skipped', text: '\r\n\r\nGET\r\n\r\n', head: '\r\nGET\r\n' },
])('$does, however they are split', ({ text, head }) => {
  for (let size = 1; size <= text.length; size++)
    expect(fed(`${text}rest`, size)).toEqual({ state: 'whole', text: head, rest: 'rest' })
})
