import { execFile } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { createDirectoryRepository } from '../../../backup/repository/directory.ts'
import { RepositoryCode } from '../../../backup/repository/port.ts'
import { body, keysOf, MIB, randomBody, textOf } from '../../conformance/repository/test-repository.ts'
import { smallDisk } from '../../support/postgresql/disks.ts'

const run = promisify(execFile)

test('a full disk rejects new objects, keeps the old ones, and accepts objects when it has space again', async () => {
  await using disk = await smallDisk(16)
  const repository = createDirectoryRepository({ directory: disk.dir })
  await repository.put('a/former', body('former'))
  const full = { code: RepositoryCode.full, message: expect.stringContaining(`No space is left in ${disk.dir}.`) as string }
  await expect(repository.put('a/large', randomBody(20 * MIB))).rejects.toMatchObject(full)
  expect(await readdir(join(disk.dir, 'a'))).toEqual(['former'])

  const makeRoom = await disk.fill()
  await expect(repository.put('a/former', randomBody(MIB))).rejects.toMatchObject(full)
  expect(await textOf(repository, 'a/former')).toBe('former')
  await repository.delete(['a/former'])
  await makeRoom()
  await repository.put('a/later', randomBody(MIB))
  expect(await keysOf(repository)).toEqual(['a/later'])
})

test('backups leave a part of the disk to databases, and only small documents use that part', async () => {
  await using disk = await smallDisk(64)
  const repository = createDirectoryRepository({ directory: disk.dir })
  const full = { code: RepositoryCode.full, message: expect.stringContaining(`No space is left in ${disk.dir}.`) as string }
  await repository.put('a/first', randomBody(40 * MIB))
  // 24 MiB are free, of which 3.2 MiB stay so.
  await expect(repository.put('a/second', randomBody(22 * MIB))).rejects.toMatchObject(full)
  await repository.put('a/second', randomBody(20 * MIB))
  await repository.put('a/third', randomBody(MIB / 2))
  await expect(repository.put('a/fourth', randomBody(2 * MIB))).rejects.toMatchObject(full)
  await repository.put('a/state.json', body('state'))
  expect(await keysOf(repository)).toEqual(['a/first', 'a/second', 'a/state.json', 'a/third'])
})

test('a disk that the system has made read-only is unavailable for writes alone', async () => {
  await using disk = await smallDisk(4)
  const repository = createDirectoryRepository({ directory: disk.dir })
  await repository.put('a/b', body('x'))
  await run('mount', ['-o', 'remount,ro', disk.dir])
  const readOnly = {
    code: RepositoryCode.unavailable,
    message: expect.stringContaining('is mounted read-only. Check the disk') as string,
  }
  await expect(repository.put('a/b', body('y'))).rejects.toMatchObject(readOnly)
  await expect(repository.put('c/d', body('y'))).rejects.toMatchObject(readOnly)
  await expect(repository.delete(['a/b'])).rejects.toMatchObject(readOnly)
  expect([await keysOf(repository), await textOf(repository, 'a/b')]).toEqual([['a/b'], 'x'])
})
