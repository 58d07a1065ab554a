import { describe, expect, test } from 'vitest'
import { INVALID_KEY } from '../../../backup/repository/keys.ts'
import { body, keysOf, MIB, type Open, randomBody, read, textOf } from './test-repository.ts'

const WRONG_KEYS = [
  '',
  '/',
  'a/',
  '/a',
  'a//b',
  '.',
  '..',
  '../a',
  'a/../b',
  'a/./b',
  'a b',
  'ä',
  'a\\b',
  'a\0b',
  '~a',
  `a/${'b'.repeat(256)}`,
]
const WRONG_PREFIXES = ['a', '/', '../', 'a/../', 'a//', 'abcde/'.repeat(90)]

export function failureClauses(open: Open): void {
  describe('a failed put', () => {
    test.each([
      { when: 'at the beginning', size: 0 },
      { when: 'after some bytes', size: 100_000 },
      { when: 'after some parts', size: 21 * MIB },
    ])('throws the error of a body that fails $when, and leaves the former object', async ({ size }) => {
      await using opened = await open()
      await opened.repository.put('a/object', body('former'))
      const broken = new Error('the source is broken')
      await expect(opened.repository.put('a/object', randomBody(size, broken))).rejects.toBe(broken)
      await expect(opened.repository.put('a/other', randomBody(size, broken))).rejects.toBe(broken)
      expect(await textOf(opened.repository, 'a/object')).toBe('former')
      expect(await keysOf(opened.repository)).toEqual(['a/object'])
    })

    test.each([{ afterBytes: 65_536 }, { afterBytes: 19 * MIB }])(
      'throws the reason of an abort after $afterBytes bytes, ends the body and leaves no object',
      async ({ afterBytes }) => {
        await using opened = await open()
        const stop = new AbortController()
        const reason = new Error('the server stops')
        let ended = false
        async function* stopping(): AsyncGenerator<Uint8Array> {
          try {
            yield* randomBody(afterBytes)
            stop.abort(reason)
            yield* randomBody(9 * MIB)
          } finally {
            ended = true
          }
        }
        await expect(opened.repository.put('a/object', stopping(), stop.signal)).rejects.toBe(reason)
        expect({ ended, keys: await keysOf(opened.repository) }).toEqual({ ended: true, keys: [] })
        await expect(opened.repository.put('a/object', body('x'), stop.signal)).rejects.toBe(reason)
      },
    )
  })

  test('get ends with the reason of an abort', async () => {
    await using opened = await open()
    await opened.repository.put('object', randomBody(20 * MIB))
    const stop = new AbortController()
    const reason = new Error('no longer needed')
    const reading = (async () => {
      for await (const chunk of await opened.repository.get('object', stop.signal)) if (chunk.length > 0) stop.abort(reason)
    })()
    await expect(reading).rejects.toBe(reason)
    await expect(opened.repository.get('object', stop.signal)).rejects.toBe(reason)
    await expect(opened.repository.delete(['object'], stop.signal)).rejects.toBe(reason)
    expect(await keysOf(opened.repository)).toEqual(['object'])
  })

  test('every method rejects an invalid key or prefix', async () => {
    await using opened = await open()
    const invalid = { code: INVALID_KEY }
    for (const key of [...WRONG_KEYS, 'abcde/'.repeat(90) + 'x']) {
      await expect(opened.repository.put(key, body('x'))).rejects.toMatchObject(invalid)
      await expect(opened.repository.get(key).then(read)).rejects.toMatchObject(invalid)
      await expect(opened.repository.delete(['valid', key])).rejects.toMatchObject(invalid)
    }
    for (const prefix of WRONG_PREFIXES)
      await expect((async () => keysOf(opened.repository, prefix))()).rejects.toMatchObject(invalid)
    expect(await keysOf(opened.repository)).toEqual([])
  })
}
