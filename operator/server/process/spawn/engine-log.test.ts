import { mkdir, mkdtemp, readdir, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { keepLogsBounded, lastOutput } from './engine-log.ts'
import { serverPaths, type ServerPaths } from '../files/paths.ts'

async function scratch(): Promise<AsyncDisposable & { readonly paths: ServerPaths }> {
  const directory = await mkdtemp(join(tmpdir(), 'mooring-log-'))
  const paths = serverPaths(directory, 'server')
  await mkdir(paths.log, { recursive: true })
  return { paths, [Symbol.asyncDispose]: () => rm(directory, { recursive: true }) }
}

const all = (): boolean => true

test('the last output is the early output, then the end of the newest log', async () => {
  await using at = await scratch()
  await writeFile(at.paths.early, 'early\n')
  await writeFile(join(at.paths.log, '1.log'), 'old\n')
  await writeFile(join(at.paths.log, '2.log'), `${'x'.repeat(10_000)}\nSTATEMENT: secret\nLOG: last\n`)
  const words = await lastOutput(at.paths, (line) => /^(early|LOG)/.test(line))
  expect(words).toBe('early\nLOG: last')
})

test('the last output has no part of a line, which might not look like one that may not be shown', async () => {
  await using at = await scratch()
  const line = `{"c":"COMMAND","attr":"${'x'.repeat(6_000)}"}`
  await writeFile(join(at.paths.log, 'mongod.log'), `${line}\n${line}\nlast\n`)
  expect(await lastOutput(at.paths, (line) => !line.startsWith('{'))).toBe('last')
})

test('the last output has no log of a former start', async () => {
  await using at = await scratch()
  await writeFile(join(at.paths.log, '1.log'), 'former\n')
  await utimes(join(at.paths.log, '1.log'), 1, 1)
  await writeFile(at.paths.early, 'early\n')
  expect(await lastOutput(at.paths, all)).not.toContain('former')
})

test('a link that the engine put into its log directory is not followed', async () => {
  await using at = await scratch()
  await symlink('/etc/passwd', join(at.paths.log, '1.log'))
  expect(await lastOutput(at.paths, all)).toBe('')
})

test('old log files are removed when new ones appear', async () => {
  await using at = await scratch()
  const over = new AbortController()
  keepLogsBounded(at.paths, new Promise(() => undefined), over.signal)
  const names = Array.from({ length: 8 }, (_, at) => `${at}.log`)
  for (const name of names) await writeFile(join(at.paths.log, name), '')
  await vi.waitFor(async () => expect((await readdir(at.paths.log)).toSorted()).toEqual(names.slice(3)), 5000)
  over.abort()
})
