import { describe, expect, test } from 'vitest'
import { body, keysOf, listed, type Open, putAll } from './test-repository.ts'
import { patient } from '../../support/patience.ts'

export function listClauses(open: Open): void {
  describe('list', () => {
    test('returns the keys below a prefix in their order, with sizes', async () => {
      await using opened = await open()
      const keys = ['a-b/1', 'a.b', 'a/B', 'a/b-c', 'a/b.gz', 'a/b/c', 'a/b/d/e', 'a/b0', 'a/b_c', 'a0', 'b/a', '.hidden/x']
      for (const [index, key] of keys.toReversed().entries()) await opened.repository.put(key, body('x'.repeat(index)))
      expect(await keysOf(opened.repository)).toEqual(keys.toSorted())
      expect(await keysOf(opened.repository, 'a/b/')).toEqual(['a/b/c', 'a/b/d/e'])
      expect(await listed(opened.repository, 'a-b/')).toEqual([{ key: 'a-b/1', sizeBytes: keys.length - 1 }])
    })

    test('returns nothing for a prefix without objects', async () => {
      await using opened = await open()
      await opened.repository.put('a/b', body('x'))
      expect(await keysOf(opened.repository, 'b/')).toEqual([])
      expect(await keysOf(opened.repository, 'a/b/')).toEqual([])
      expect(await keysOf(opened.repository, 'a/b/c/d/')).toEqual([])
    })

    test('and delete go past the number of objects of one request', { timeout: patient(240_000) }, async () => {
      await using opened = await open()
      const keys = Array.from({ length: 1_020 }, (_, index) => `wal/1/${String(index).padStart(5, '0')}`)
      await putAll(opened.repository, keys)
      expect(await keysOf(opened.repository, 'wal/')).toEqual(keys)
      await opened.repository.delete(keys.slice(0, 1_010))
      expect(await keysOf(opened.repository)).toEqual(keys.slice(1_010))
    })

    test('ends when its reader stops, and when its signal aborts', async () => {
      await using opened = await open()
      await putAll(opened.repository, ['a/1', 'a/2', 'b/3'])
      for await (const { key } of opened.repository.list('')) {
        expect(key).toBe('a/1')
        break
      }
      const aborted = AbortSignal.abort(new Error('stopped'))
      await expect(Array.fromAsync(opened.repository.list('', aborted))).rejects.toThrow('stopped')
    })
  })
}
