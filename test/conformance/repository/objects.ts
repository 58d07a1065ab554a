import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { RepositoryCode } from '../../../backup/repository/port.ts'
import { body, keysOf, listed, MIB, type Open, read, sha256, textOf } from './test-repository.ts'

export function objectClauses(open: Open): void {
  describe('an object', () => {
    test.each([
      { size: 0, chunkBytes: 1 },
      { size: 1, chunkBytes: 1 },
      { size: 5_000, chunkBytes: 7 },
      { size: 8 * MIB, chunkBytes: 65_536 },
      { size: 21 * MIB + 1, chunkBytes: 100_000 },
      { size: 21 * MIB + 1, chunkBytes: Infinity },
    ])('of $size bytes in chunks of $chunkBytes is read as it was written', async ({ size, chunkBytes }) => {
      await using opened = await open()
      const bytes = randomBytes(size)
      const stored = await opened.repository.put('a/b/object.bin', body(bytes, chunkBytes))
      expect(stored).toEqual({ sizeBytes: size, sha256: sha256(bytes) })
      expect(sha256(await read(await opened.repository.get('a/b/object.bin')))).toBe(stored.sha256)
      expect(await listed(opened.repository)).toEqual([{ key: 'a/b/object.bin', sizeBytes: size }])
    })

    test('is replaced by another with its key', async () => {
      await using opened = await open()
      await opened.repository.put('state.json', body('a long first text'))
      await opened.repository.put('state.json', body('second'))
      expect(await textOf(opened.repository, 'state.json')).toBe('second')
      expect(await keysOf(opened.repository)).toEqual(['state.json'])
    })

    test('is seen whole by readers while it is replaced', async () => {
      await using opened = await open()
      const texts = ['a', 'b', 'c'].map((letter) => letter.repeat(300_000))
      await opened.repository.put('x/state.json', body(texts[0] ?? ''))
      const writes = async () => {
        for (let round = 0; round < 12; round += 1)
          await opened.repository.put('x/state.json', body(texts[round % 3] ?? '', 50_000))
      }
      const reads = async () => {
        for (let round = 0; round < 40; round += 1) expect(texts).toContain(await textOf(opened.repository, 'x/state.json'))
      }
      await Promise.all([writes(), reads()])
    })

    test('of two concurrent writers is that of one of them', async () => {
      await using opened = await open()
      const texts = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(200_000))
      await Promise.all(texts.map((text) => opened.repository.put('x/state.json', body(text, 10_000))))
      expect(texts).toContain(await textOf(opened.repository, 'x/state.json'))
      expect(await keysOf(opened.repository)).toEqual(['x/state.json'])
    })

    test('that does not exist is reported before the first byte', async () => {
      await using opened = await open()
      await opened.repository.put('a/b/c', body('x'))
      for (const key of ['missing', 'a/missing', 'a/b', 'a/b/c/d', 'no/such/folder'])
        await expect(opened.repository.get(key)).rejects.toMatchObject({
          code: RepositoryCode.notFound,
          message: `There is no object ${key} in ${opened.repository.name}.`,
        })
    })

    test('may be read in part only, and by several readers', async () => {
      await using opened = await open()
      const bytes = randomBytes(3 * MIB)
      await opened.repository.put('object', body(bytes))
      const readers = Array.from({ length: 80 }, async () => {
        for await (const chunk of await opened.repository.get('object')) return chunk[0]
        return undefined
      })
      expect(await Promise.all(readers)).toEqual(readers.map(() => bytes[0]))
      expect(sha256(await read(await opened.repository.get('object')))).toBe(sha256(bytes))
    })
  })

  describe('delete', () => {
    test('removes the objects that exist, and no other', async () => {
      await using opened = await open()
      for (const key of ['a/1', 'a/2', 'a/b/3', 'a-4', 'c']) await opened.repository.put(key, body(key))
      await opened.repository.delete(['a/1', 'a/b/3', 'a/b/missing', 'missing/4', 'a', 'c/5'])
      expect(await keysOf(opened.repository)).toEqual(['a-4', 'a/2', 'c'])
      await opened.repository.delete([])
      await expect(opened.repository.get('a/1')).rejects.toMatchObject({ code: RepositoryCode.notFound })
    })

    test('leaves room for an object with the same key', async () => {
      await using opened = await open()
      for (const text of ['first', 'second', 'third']) {
        await opened.repository.put('a/b/object', body(text))
        expect(await textOf(opened.repository, 'a/b/object')).toBe(text)
        await opened.repository.delete(['a/b/object'])
        expect(await keysOf(opened.repository)).toEqual([])
      }
    })
  })
}
