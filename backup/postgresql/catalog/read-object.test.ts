import { expect, test } from 'vitest'
import { MooringError } from '../../../shared/errors.ts'
import { type Repository, RepositoryCode } from '../../repository/port.ts'
import { verify } from './read-object.ts'

const KEY = 'base/20261125T100000Z-0000/data-0001.tar.gz'

/** Repository with one object, whose notes `put` rejects with a code. */
function repositoryWith(object: Uint8Array | undefined, code: string | undefined, noted: string[] = []): Repository {
  return {
    name: 'test',
    get: () => (object ? Promise.resolve(streamOf(object)) : Promise.reject(new MooringError(RepositoryCode.notFound, 'absent'))),
    put(key) {
      if (code !== undefined) return Promise.reject(new MooringError(code, 'rejected'))
      noted.push(key)
      return Promise.resolve({ sizeBytes: 1, sha256: '' })
    },
    list: () => streamOf(),
    delete: () => Promise.resolve(),
  }
}

async function* streamOf<T>(...items: readonly T[]): AsyncIterable<T> {
  await Promise.resolve()
  yield* items
}

const check = (repository: Repository): Promise<void> =>
  verify({ repository, prefix: 'p', signal: new AbortController().signal }, { key: KEY, sha256: '0'.repeat(64) })

test('a damaged object gets a note', async () => {
  const noted: string[] = []
  await expect(check(repositoryWith(Buffer.from('x'), undefined, noted))).rejects.toMatchObject({ code: 'archive_corrupt' })
  expect(noted).toEqual([`p/corrupt/${KEY}`])
})

test.each([
  { object: 'damaged', bytes: Buffer.from('x'), code: RepositoryCode.unavailable },
  { object: 'missing', bytes: undefined, code: RepositoryCode.unavailable },
  { object: 'damaged', bytes: Buffer.from('x'), code: RepositoryCode.full },
])('a $object object is reported as such although its note fails with $code', async ({ bytes, code }) => {
  await expect(check(repositoryWith(bytes, code))).rejects.toMatchObject({ code: 'archive_corrupt' })
})

test('an abort during the note is not hidden', async () => {
  await expect(check(repositoryWith(Buffer.from('x'), 'aborted'))).rejects.toMatchObject({ code: 'aborted' })
})
