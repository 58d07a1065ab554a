import fc from 'fast-check'
import { expect, test } from 'vitest'
import { MAX_HEAD } from '../head/fields.ts'
import { HeadBuffer } from './head-buffer.ts'

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
