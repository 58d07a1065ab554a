import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { serverPaths, readRecord, readRecords, type Record, writeRecord } from './paths.ts'

const record: Record = {
  binaries: 'postgresql-15',
  version: '15.4.0',
  listen: '127.0.0.1',
  port: 20_001,
  process: { pid: 12, startTime: '345' },
}

async function scratch(): Promise<AsyncDisposable & { readonly directory: string }> {
  const directory = await mkdtemp(join(tmpdir(), 'mooring-record-'))
  await mkdir(join(directory, 'server'))
  return { directory, [Symbol.asyncDispose]: () => rm(directory, { recursive: true }) }
}

test('a written record is read, for one server and for all', async () => {
  await using at = await scratch()
  const paths = serverPaths(at.directory, 'server')
  await writeRecord(paths, record)
  expect(await readRecord(paths)).toEqual(record)
  expect(await readRecords(at.directory)).toEqual(new Map([['server', record]]))
})

test.each(['', '{', 'null', '{"port": 1}', '{"process": {"pid": 0}}'])('%j is an invalid record', async (text) => {
  await using at = await scratch()
  const paths = serverPaths(at.directory, 'server')
  await writeFile(paths.record, text)
  expect(await readRecord(paths)).toBeUndefined()
})

test('a missing directory has no records', async () => {
  expect(await readRecords('/nonexistent/servers')).toEqual(new Map())
})
