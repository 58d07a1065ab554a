import { expect, test } from 'vitest'
import { draftRule, filledRules, isSameRules, pastedRules, rulesOf } from './rules-draft.ts'

test('empty rows are not rules, and an empty description is none', () => {
  const rows = [draftRule(), draftRule({ cidr: ' 192.0.2.1 ' }), draftRule({ description: 'x' }), draftRule({ cidr: ' ' })]
  expect(filledRules(rows)).toEqual([rows[1], rows[2]])
  expect(rulesOf(rows)).toEqual([{ cidr: '192.0.2.1' }, { cidr: '', description: 'x' }])
})

test('rules keep their text on the way through the form', () => {
  const rules = [{ cidr: '203.0.113.0/24', description: '<b>office</b>' }, { cidr: '2001:db8::/32' }]
  expect(rulesOf(rules.map(draftRule))).toEqual(rules)
})

test.each([
  ['an address a line', '192.0.2.1\n192.0.2.2\r\n\n', ['192.0.2.1|', '192.0.2.2|']],
  [
    'descriptions after the address',
    '192.0.2.0/24 the office\n2001:db8::1\t# VPN, exit',
    ['192.0.2.0/24|the office', '2001:db8::1|VPN, exit'],
  ],
  ['a table of two columns', '192.0.2.1,office\n192.0.2.2;home', ['192.0.2.1|office', '192.0.2.2|home']],
  ['nothing', ' \n ', []],
])('a pasted text with %s fills rows', (_with, text, rows) => {
  expect(pastedRules(text).map(({ cidr, description }) => `${cidr}|${description}`)).toEqual(rows)
})

test.each([
  [[], [], true],
  [[{ cidr: 'a' }], [{ cidr: 'a', description: '' }], true],
  [[{ cidr: 'a', description: 'x' }], [{ cidr: 'a' }], false],
  [[{ cidr: 'a' }, { cidr: 'b' }], [{ cidr: 'b' }, { cidr: 'a' }], false],
  [[{ cidr: 'a' }], [], false],
  [null, null, true],
  [null, [], false],
])('the rules %j are the same as %j: %s', (one, other, isSame) => {
  expect(isSameRules(one, other)).toBe(isSame)
})
