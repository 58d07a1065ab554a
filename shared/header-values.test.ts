import { expect, test } from 'vitest'
import type { StoredHeaderModification } from '../crds/tunnel-config.ts'
import { copyText, isHeaderValue, literalItems, parseCopy, referringItems, withoutLineBreak } from './header-values.ts'

const from = (key: string, name = 'Authorization'): StoredHeaderModification => ({
  ...{ name, type: 'request' },
  valueFrom: { secretKeyRef: { name: 'web-headers', key } },
})
const literal = (value: string, name = 'Authorization') => ({ name, value, type: 'request' as const })
const known = { items: [from('a-1')], values: new Map([['web-headers/a-1', 'Bearer 1']]) }
const own = { secret: 'own-headers', draw: () => 'drawn' }

test.each([
  { item: 'with its present value keeps its reference', items: [literal('Bearer 1', 'authorization')], key: 'a-1', added: {} },
  {
    item: 'with another value gets a new key',
    items: [literal('Bearer 2')],
    key: 'authorization-drawn',
    added: { 'authorization-drawn': 'Bearer 2' },
  },
  {
    item: 'whose name no key can have gets a similar key',
    items: [literal('x', "A!'B")],
    key: 'a__b-drawn',
    added: { 'a__b-drawn': 'x' },
  },
  { item: 'that removes its header stays', items: [literal('')], key: undefined, added: {} },
])('referringItems: an item $item', ({ items, key, added }) => {
  const found = referringItems(items, known, own)
  expect(found.added).toEqual(added)
  expect(found.items.map(({ valueFrom }) => valueFrom?.secretKeyRef.key)).toEqual([key])
  expect(found.items.map(({ value }) => value)).toEqual([key === undefined ? '' : undefined])
})

test('referringItems: an item whose value was literal refers to the Secret', () => {
  const { items } = referringItems([literal('Bearer 1')], { items: [literal('Bearer 1')], values: new Map() }, own)
  expect(items).toEqual([
    { ...from('authorization-drawn'), valueFrom: { secretKeyRef: { name: 'own-headers', key: 'authorization-drawn' } } },
  ])
})

test('literalItems: an item whose value is missing removes its header', () => {
  expect(literalItems([from('a-1'), from('gone', 'X-B'), literal('c', 'X-C')], known.values)).toEqual([
    literal('Bearer 1'),
    literal('', 'X-B'),
    literal('c', 'X-C'),
  ])
})

test.each([
  { value: 'Bearer 1\n', header: 'Bearer 1', usable: true },
  { value: 'Bearer 1\r\n', header: 'Bearer 1', usable: true },
  { value: 'a\nX-Injected: b\n', header: 'a\nX-Injected: b', usable: false },
  { value: 'a'.repeat(1025), header: 'a'.repeat(1025), usable: false },
])('whether the value $value of a Secret can be sent: $usable', ({ value, header, usable }) => {
  expect(withoutLineBreak(value)).toBe(header)
  expect(isHeaderValue(header)).toBe(usable)
})

test.each([
  {
    text: copyText(
      new Map([
        ['b/b', '2'],
        ['a/a', '1'],
      ]),
    ),
    values: [
      ['a/a', '1'],
      ['b/b', '2'],
    ],
  },
  { text: '{"a/a":"x\\ny"}', values: undefined },
  { text: 'no JSON', values: undefined },
])('parseCopy of $text', ({ text, values }) => {
  expect(parseCopy(text)).toEqual(values && new Map(values as [string, string][]))
})
