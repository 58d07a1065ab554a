import fc from 'fast-check'
import { expect, test } from 'vitest'
import { moveDefinition, moveNames } from './definitions.ts'

const move = { from: 'shop', to: 'copy' }

test.each([
  { what: 'a qualified name', text: 'SELECT shop.t.a', moved: 'SELECT `copy`.t.a' },
  { what: 'a quoted name', text: 'SELECT `shop`.`t`', moved: 'SELECT `copy`.`t`' },
  { what: 'a name with space before the dot', text: 'SELECT shop . t', moved: 'SELECT `copy` . t' },
  { what: 'a name after an executable comment', text: '/*!50001 VIEW shop.v */', moved: '/*!50001 VIEW `copy`.v */' },
  { what: 'a name after a literal', text: "'it''s' = shop.t", moved: "'it''s' = `copy`.t" },
])('moveNames moves $what', ({ text, moved }) => {
  expect(moveNames(text, move)).toBe(moved)
})

test.each([
  { what: 'an unqualified name', text: 'SELECT shop FROM shop' },
  { what: 'a longer name', text: 'SELECT shops.t, myshop.t, `shop2`.t' },
  { what: 'a literal', text: `SELECT 'shop.t', "shop.t", 'a\\'shop.t', 'it''s shop.t'` },
  { what: 'a comment', text: '/* shop.t */ # shop.t\n-- shop.t' },
  { what: 'text inside a quoted name', text: 'SELECT `a shop.t` , `a``shop.t`' },
])('moveNames keeps $what', ({ text }) => {
  expect(moveNames(text, move)).toBe(text)
})

test('moveNames reads the text under the mode with which it was written', () => {
  expect(moveNames('"shop"."t"', move, 'REAL_AS_FLOAT,ANSI_QUOTES')).toBe('`copy`."t"')
  expect(moveNames(String.raw`'\' || shop.t || 'x'`, move, 'NO_BACKSLASH_ESCAPES')).toBe(String.raw`'\' || ` + "`copy`.t || 'x'")
})

test('moveNames keeps all text that does not contain the name', () => {
  fc.assert(fc.property(fc.string({ unit: 'grapheme' }), (text) => text.includes('shop') || moveNames(text, move) === text))
})

test.each([
  [
    'CREATE DEFINER=`shop`@`%` FUNCTION `f`() RETURNS int RETURN 1',
    "CREATE DEFINER='copy'@'%' FUNCTION `f`() RETURNS int RETURN 1",
  ],
  [
    'CREATE ALGORITHM=UNDEFINED DEFINER=`a``b`@`%` SQL SECURITY DEFINER VIEW `v` AS select 1',
    "CREATE ALGORITHM=UNDEFINED DEFINER='copy'@'%' SQL SECURITY DEFINER VIEW `v` AS select 1",
  ],
  ['CREATE DEFINER="shop"@"%" trigger t', `CREATE DEFINER='copy'@'%' trigger t`],
  ['CREATE OR REPLACE DEFINER=`x`@`%` PACKAGE p', "CREATE OR REPLACE DEFINER='copy'@'%' PACKAGE p"],
])('moveDefinition makes the new tenant the definer of %s', (text, moved) => {
  expect(moveDefinition(text, move)).toBe(moved)
})

test.each([
  'CREATE FUNCTION f() RETURNS int RETURN 1',
  'CREATE /* DEFINER=`a`@`%` */ FUNCTION f()',
  ' CREATE DEFINER=`a`@`%` FUNCTION f()',
  '',
])('moveDefinition rejects a text without a definer: %s', (text) => {
  expect(() => moveDefinition(text, move)).toThrow('no definer')
})
