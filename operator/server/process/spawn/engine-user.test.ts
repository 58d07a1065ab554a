import fc from 'fast-check'
import { expect, test } from 'vitest'
import { engineUser, findLogin } from './engine-user.ts'

const PASSWD =
  'root:x:0:0:root:/root:/bin/sh\n# comment\nnobody:x:65534:65533:nobody:/nonexistent:/usr/sbin/nologin\nbroken:x::\n'

test.each([
  { does: 'finds a login', name: 'nobody', found: { uid: 65_534, gid: 65_533 } },
  { does: 'finds none', name: 'mooring', found: undefined },
  { does: 'ignores an invalid line', name: 'broken', found: undefined },
])('$does', ({ name, found }) => {
  expect(findLogin(PASSWD, name)).toEqual(found)
})

test('never fails on any text', () => {
  fc.assert(fc.property(fc.string(), fc.string(), (text, name) => void findLogin(text, name)))
})

test('is never root', async () => {
  expect((await engineUser()).uid).not.toBe(0)
})
