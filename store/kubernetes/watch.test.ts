import fc from 'fast-check'
import { expect, test } from 'vitest'
import { lines } from './watch.ts'

async function* inPieces(bytes: Buffer, cuts: readonly number[]): AsyncGenerator<Buffer> {
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  for (const [index, place] of places.slice(1).entries()) yield bytes.subarray(places[index], place)
}

test('lines are complete wherever the chunks are split, also within a character', async () => {
  const line = fc
    .string({ unit: 'grapheme' })
    .map((text) => text.replaceAll('\n', ''))
    .filter((text) => text !== '')
  await fc.assert(
    fc.asyncProperty(fc.array(line), fc.array(fc.nat(), { maxLength: 20 }), fc.boolean(), async (wanted, cuts, ended) => {
      const text = wanted.join('\n') + (ended ? '\n' : '')
      expect(await Array.fromAsync(lines(inPieces(Buffer.from(text), cuts)))).toEqual(wanted)
    }),
  )
})
