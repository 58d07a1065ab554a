import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { engineUser, findLogin, isReachable, mayExecute } from './engine-user.ts'

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

const user = { uid: 1000, gid: 100 }

test.each([
  { does: 'applies the owner bit to the owner', owned: { uid: 1000, gid: 1, mode: 0o100 }, may: true },
  { does: 'ignores other bits for the owner', owned: { uid: 1000, gid: 100, mode: 0o011 }, may: false },
  { does: 'applies the group bit to the group', owned: { uid: 1, gid: 100, mode: 0o010 }, may: true },
  { does: 'ignores the last bit for the group', owned: { uid: 1, gid: 100, mode: 0o701 }, may: false },
  { does: 'applies the last bit to other users', owned: { uid: 1, gid: 1, mode: 0o001 }, may: true },
  { does: 'rejects other users at a directory of mode 0700', owned: { uid: 0, gid: 0, mode: 0o700 }, may: false },
])('$does', ({ owned, may }) => {
  expect(mayExecute(owned, user)).toBe(may)
})

test('checks every parent directory', async () => {
  const home = await mkdtemp(join(tmpdir(), 'mooring-reach-'))
  const program = join(home, 'a', 'program')
  await mkdir(join(home, 'a'), { mode: 0o755 })
  await writeFile(program, '', { mode: 0o755 })
  expect(await isReachable(program, { uid: 65_534, gid: 65_534 })).toBe(process.getuid?.() === 65_534)
  await chmod(home, 0o755)
  expect(await isReachable(program, { uid: 65_534, gid: 65_534 })).toBe(true)
  await rm(home, { recursive: true })
})
