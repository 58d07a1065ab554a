import fc from 'fast-check'
import { expect, test } from 'vitest'
import { KeyIndex } from './key-index.ts'

const blob = (number: number) => Buffer.from(`key ${number}`)
const line = (number: number, comment = '') => `ssh-ed25519 ${blob(number).toString('base64')}${comment}`
const TYPE = 'ssh-ed25519'

test('a key is found by type and bytes, whatever its comment and padding', () => {
  const index = new KeyIndex()
  index.replace('a', [], [line(1, ' me@host'), line(22).replace(/=+$/, '')])
  expect([index.of(TYPE, blob(1), 9), index.of(TYPE, blob(22), 9)]).toEqual([['a'], ['a']])
  expect([index.of('ssh-rsa', blob(1), 9), index.of(TYPE, blob(3), 9)]).toEqual([[], []])
})

test('a lookup returns at most the given number of tunnels', () => {
  const index = new KeyIndex()
  for (let number = 0; number < 100; number++) index.replace(`tunnel-${number}`, [], [line(1)])
  expect(index.of(TYPE, blob(1), 3)).toHaveLength(3)
})

test('after any changes a key is found in exactly the tunnels that list it', () => {
  const change = fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.array(fc.nat(4), { maxLength: 5 }))
  fc.assert(
    fc.property(fc.array(change, { maxLength: 30 }), (changes) => {
      const [index, lists] = [new KeyIndex(), new Map<string, readonly string[]>()]
      for (const [hostname, numbers] of changes) {
        const after = numbers.map((number) => line(number))
        index.replace(hostname, lists.get(hostname) ?? [], after)
        lists.set(hostname, after)
      }
      for (let number = 0; number <= 4; number++) {
        const expected = [...lists].filter(([, lines]) => lines.includes(line(number))).map(([hostname]) => hostname)
        expect([...index.of(TYPE, blob(number), 9)].sort()).toEqual(expected.sort())
      }
    }),
  )
})
