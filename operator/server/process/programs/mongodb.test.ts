import { mkdtempDisposable, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { mongodb } from './mongodb.ts'

test('configure writes no password, and keeps secrets to the engine’s user', () => {
  const files = mongodb.configure({
    ...{ listen: '0.0.0.0', port: 27_017, admin: 'mooring', password: 'secret-of-admin', capacity: 50, sharedMemory: true },
    certificate: { key: 'KEY', certificate: 'CERTIFICATE', ca: 'CA' },
  })
  expect(JSON.stringify(files)).not.toContain('secret-of-admin')
  expect(files.filter(({ secret }) => secret).map(({ name }) => name)).toEqual(['keyfile', 'server.pem'])
})

test.each([
  { content: '4711\n', pid: 4711 },
  { content: '', pid: undefined },
  { content: '1\n', pid: undefined },
  { content: 'x\n', pid: undefined },
])('mainPid reads $pid from $content', async ({ content, pid }) => {
  await using data = await mkdtempDisposable(join(tmpdir(), 'mooring-mongod-'))
  await writeFile(join(data.path, 'mongod.lock'), content)
  expect(await mongodb.mainPid(data.path)).toBe(pid)
})

test('mainPid follows no link', async () => {
  await using data = await mkdtempDisposable(join(tmpdir(), 'mooring-mongod-'))
  await writeFile(join(data.path, 'other'), '4711')
  await symlink(join(data.path, 'other'), join(data.path, 'mongod.lock'))
  expect(await mongodb.mainPid(data.path)).toBeUndefined()
})

test.each([
  { line: '{"s":"F","c":"CONTROL","msg":"no space"}', shown: true },
  { line: '{"s":"E","c":"STORAGE","msg":"no space"}', shown: true },
  { line: '{"s":"E","c":"QUERY","attr":{"cmd":"document"}}', shown: false },
  { line: '{"s":"I","c":"CONTROL"}', shown: false },
  { line: '{"s":"F"', shown: false },
  { line: 'mongod: error while loading shared libraries', shown: true },
])('isShowable is $shown for $line', ({ line, shown }) => {
  expect(mongodb.isShowable(line)).toBe(shown)
})
