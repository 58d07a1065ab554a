import { expect, test } from 'vitest'
import { scopedCookie } from './forward-response.ts'

test.each([
  ['a=1', 'a=1'],
  ['a=1; Path=/; Domain=t.test; Secure', 'a=1; Path=/; Secure'],
  ['a=1; domain = .T.test', 'a=1'],
  ['a=1;Domain=other.t.test', 'a=1'],
  ['a=1; Domain=me.t.test', 'a=1; Domain=me.t.test'],
  ['a=1; Domain=.ME.t.test; Path=/', 'a=1; Domain=.ME.t.test; Path=/'],
  ['a=1; Domain=x.me.t.test', 'a=1; Domain=x.me.t.test'],
  ['a=1; Domain=evilme.t.test', 'a=1'],
  ['a=1; Domain=me.t.test; Domain=t.test', 'a=1; Domain=me.t.test'],
  ['a=1; Domain', 'a=1'],
  ['a=1; Domain=; Path=/', 'a=1; Path=/'],
  ['a=1; DOMAIN=..t.test', 'a=1'],
  ['a=1; Domain=t.test.', 'a=1'],
  ['a=1; Domain=me.t.test.', 'a=1'],
  ['a=1; Domain=test', 'a=1'],
  ['a=1; Domain="t.test"', 'a=1'],
  ['a=1; Domain=me.t.test, b=2; Domain=t.test', 'a=1'],
  ['a="x; Domain=t.test"', 'a="x'],
  ['; Domain=t.test', ''],
  ['a=1; Domain=t.test; Domain=me.t.test; domain=.t.test', 'a=1; Domain=me.t.test'],
  ['__Host-a=1; Secure; Path=/; Domain=t.test', '__Host-a=1; Secure; Path=/'],
  ['__Secure-a=1; Secure; Domain=.t.test', '__Secure-a=1; Secure'],
  ['a=domain=t.test; Path=/', 'a=domain=t.test; Path=/'],
])('%s becomes %s', (value, wanted) => expect(scopedCookie(value, 'me.t.test')).toBe(wanted))
