import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { conformance } from '../../test/conformance/repository.ts'
import { body, keysOf, randomBody, type TestRepository, textOf } from '../../test/conformance/repository/test-repository.ts'
import { scratch } from '../../test/support/postgresql/disks.ts'
import { createDirectoryRepository } from './directory.ts'
import { RepositoryCode } from './port.ts'

interface TemporaryRepository extends TestRepository {
  readonly directory: string
  path(name: string): string
}

async function temporary(): Promise<TemporaryRepository> {
  const parent = await mkdtemp(join(await scratch(), 'mooring-repository-'))
  const directory = join(parent, 'backups')
  await mkdir(directory)
  return {
    directory,
    path: (name) => join(directory, name),
    repository: createDirectoryRepository({ directory }),
    [Symbol.asyncDispose]: () => rm(parent, { recursive: true, force: true }),
  }
}

conformance('the directory repository', temporary)

const unavailable = (message: string) => ({
  code: RepositoryCode.unavailable,
  message: expect.stringContaining(message) as string,
})

test('files and directories are for the user of the process alone', async () => {
  await using opened = await temporary()
  await opened.repository.put('a/b', body('x'))
  const modes = await Promise.all(['a', 'a/b'].map(async (name) => ((await stat(opened.path(name))).mode & 0o777).toString(8)))
  expect(modes).toEqual(['700', '600'])
})

test('a failed put leaves no file, and a delete no empty directory', async () => {
  await using opened = await temporary()
  await expect(opened.repository.put('a/b/c', randomBody(200_000, new Error('broken')))).rejects.toThrow('broken')
  expect(await readdir(opened.path('a/b'))).toEqual([])
  for (const key of ['a/b/c', 'a/b/d', 'a/e']) await opened.repository.put(key, body('x'))
  await opened.repository.delete(['a/b/c', 'a/b/d'])
  expect(await readdir(opened.directory, { recursive: true })).toEqual(['a', 'a/e'])
  await opened.repository.delete(['a/e'])
  expect(await readdir(opened.directory)).toEqual([])
})

test('put creates its directory again when a delete removes it meanwhile', async () => {
  await using opened = await temporary()
  const { repository } = opened
  const writers = Array.from({ length: 8 }, async (_, writer) => {
    for (let round = 0; round < 25; round += 1) {
      await repository.put(`a/b/c/${writer}`, body('x'))
      await repository.delete([`a/b/c/${writer}`])
    }
  })
  await Promise.all(writers)
  expect(await readdir(opened.directory)).toEqual([])
})

test('list removes half-written files that are an hour old, and no other', async () => {
  await using opened = await temporary()
  await opened.repository.put('a/b', body('x'))
  for (const name of ['~old', 'a/~old', 'a/~young', 'a/foreign file']) await writeFile(opened.path(name), 'half')
  const hoursAgo = (hours: number) => Date.now() / 1_000 - hours * 3_600
  for (const name of ['~old', 'a/~old', 'a/foreign file', 'a/b']) await utimes(opened.path(name), hoursAgo(1.1), hoursAgo(1.1))
  await utimes(opened.path('a/~young'), hoursAgo(0.9), hoursAgo(0.9))
  expect(await keysOf(opened.repository)).toEqual(['a/b'])
  expect((await readdir(opened.directory, { recursive: true })).sort()).toEqual(['a', 'a/b', 'a/foreign file', 'a/~young'])
})

describe('symbolic links and other files', () => {
  test('below the root are not followed by any method', async () => {
    await using opened = await temporary()
    const outside = join(opened.directory, '../outside')
    await mkdir(outside)
    await writeFile(join(outside, 'secret'), 'secret')
    await symlink(outside, opened.path('a'))
    await symlink(join(outside, 'secret'), opened.path('link'))
    const { repository } = opened
    await expect(repository.put('a/new', body('x'))).rejects.toMatchObject(unavailable('links are not followed'))
    await expect(repository.put('a/b/new', body('x'))).rejects.toMatchObject(unavailable('links are not followed'))
    for (const key of ['a/secret', 'link'])
      await expect(repository.get(key)).rejects.toMatchObject({ code: RepositoryCode.notFound })
    await repository.delete(['a/secret'])
    expect(await keysOf(repository)).toEqual([])
    expect(await keysOf(repository, 'a/')).toEqual([])
    await repository.put('link', body('own'))
    expect([await readdir(outside), await readFile(join(outside, 'secret'), 'utf8')]).toEqual([['secret'], 'secret'])
    expect(await textOf(repository, 'link')).toBe('own')
  })

  test('the root may be a symbolic link', async () => {
    await using opened = await temporary()
    await symlink(opened.directory, opened.path('../link'))
    const repository = createDirectoryRepository({ directory: opened.path('../link') })
    await repository.put('a/b', body('x'))
    expect(await keysOf(opened.repository)).toEqual(['a/b'])
  })

  test('a named pipe is no object and blocks no reader', async () => {
    await using opened = await temporary()
    execFileSync('mkfifo', [opened.path('pipe')])
    await expect(opened.repository.get('pipe')).rejects.toMatchObject({ code: RepositoryCode.notFound })
    expect(await keysOf(opened.repository)).toEqual([])
  })

  test('a file where a directory is needed is reported', async () => {
    await using opened = await temporary()
    await opened.repository.put('a/b', body('x'))
    await expect(opened.repository.put('a/b/c', body('y'))).rejects.toMatchObject(unavailable('a file or a symbolic link'))
    await expect(opened.repository.put('a', body('y'))).rejects.toMatchObject(unavailable('A directory in'))
    expect(await keysOf(opened.repository)).toEqual(['a/b'])
  })
})

test('a root that is missing makes every method unavailable until it is back', async () => {
  await using opened = await temporary()
  const { repository, directory } = opened
  await repository.put('a/b', body('x'))
  await rename(directory, `${directory}-away`)
  const missing = unavailable(`The directory ${directory} does not exist. Create it, or mount the volume that has it.`)
  await expect(repository.put('a/b', body('y'))).rejects.toMatchObject(missing)
  await expect(repository.put('c', body('y'))).rejects.toMatchObject(missing)
  await expect(repository.get('a/b')).rejects.toMatchObject(missing)
  await expect(keysOf(repository, 'a/')).rejects.toMatchObject(missing)
  await expect(repository.delete(['a/b'])).rejects.toMatchObject(missing)
  await rename(`${directory}-away`, directory)
  expect(await textOf(repository, 'a/b')).toBe('x')

  await using other = await temporary()
  await writeFile(other.path('file'), '')
  const noDirectory = createDirectoryRepository({ directory: other.path('file') })
  await expect(noDirectory.put('a', body('x'))).rejects.toMatchObject(unavailable('where a directory is expected'))
  await expect(keysOf(noDirectory)).rejects.toMatchObject(unavailable('where a directory is expected'))
})
