import { randomUUID } from 'node:crypto'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { S3Client, CreateMultipartUploadCommand, ListMultipartUploadsCommand, UploadPartCommand } from '@aws-sdk/client-s3'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Repository, RepositoryCode } from '../../../backup/repository/port.ts'
import { createS3Repository, type S3RepositoryOptions } from '../../../backup/repository/s3.ts'
import { createUnfinishedUploads } from '../../../backup/repository/s3-unfinished.ts'
import { body, keysOf, listed, MIB, randomBody, read, sha256, textOf } from '../../conformance/repository/test-repository.ts'
import { BUILD_MS, ROOT_KEY, type S3Server, startS3Server } from '../../support/backup/s3-server.ts'
import { openStallingProxy } from '../../support/backup/stalling-proxy.ts'
import { smallDisk } from '../../support/postgresql/disks.ts'

let server: S3Server

beforeAll(async () => {
  server = await startS3Server()
}, BUILD_MS)
afterAll(() => server[Symbol.asyncDispose]())

interface Bucket {
  readonly repository: Repository
  readonly bucket: string
  readonly directory: string
}

async function newBucket(options: Partial<S3RepositoryOptions> = {}, at = server): Promise<Bucket> {
  const bucket = `test-${randomUUID()}`
  const directory = await at.createBucket(bucket)
  return { bucket, directory, repository: repositoryOf({ bucket, endpoint: at.endpoint, ...options }) }
}

const repositoryOf = (options: Partial<S3RepositoryOptions> & { readonly bucket: string }): Repository =>
  createS3Repository({ prefix: 'mooring', region: 'us-east-1', endpoint: server.endpoint, credentials: ROOT_KEY, ...options })

const failure = (code: string, says: string) => ({ code, message: expect.stringContaining(says) as string })

/** Expects each method to fail with the same error. */
async function expectAllToFail(repository: Repository, error: object): Promise<void> {
  await expect(repository.put('a', body('x'))).rejects.toMatchObject(error)
  await expect(repository.get('a')).rejects.toMatchObject(error)
  await expect(keysOf(repository)).rejects.toMatchObject(error)
  await expect(repository.delete(['a'])).rejects.toMatchObject(error)
}

test('a server that is away makes every method unavailable until it is back', async () => {
  await using own = await startS3Server()
  const { repository } = await newBucket({}, own)
  await repository.put('a', body('x'))
  await own.stop()
  await expectAllToFail(repository, failure(RepositoryCode.unavailable, `The server of ${repository.name} refuses connections.`))
  await own.start()
  expect(await textOf(repository, 'a')).toBe('x')
})

test('wrong credentials and buckets are explained, and no secret is in the message', async () => {
  const { bucket } = await newBucket()
  const secretAccessKey = 'hunter2-hunter2-hunter2'
  const user = await server.createUser()
  const cases = [
    { options: { bucket: 'missing-bucket' }, says: 'The bucket missing-bucket of s3://missing-bucket/mooring does not exist.' },
    {
      options: { bucket, credentials: { ...ROOT_KEY, secretAccessKey } },
      says: `The secret key for the bucket ${bucket} is wrong.`,
    },
    {
      options: { bucket, credentials: { accessKeyId: 'nobody', secretAccessKey } },
      says: `The server of the bucket ${bucket} does not know the access key.`,
    },
    { options: { bucket, credentials: user }, says: `in the bucket ${bucket}. Allow s3:GetObject, s3:PutObject` },
    { options: { bucket, endpoint: 'http://mooring.invalid' }, says: 'Check the endpoint, the region and DNS.' },
    { options: { bucket, endpoint: server.endpoint.replace('http', 'https') }, says: 'does not speak TLS' },
  ]
  for (const { options, says } of cases) {
    const repository = repositoryOf(options)
    await expectAllToFail(repository, failure(RepositoryCode.unavailable, says))
    await expect(repository.put('a', body('x'))).rejects.not.toThrow(/hunter2|secret-of/)
  }
})

/** Limits for requests that nothing answers. */
const IMPATIENT = { stallLimitMs: 1_000, connectLimitMs: 1_000 }
/** Limits for requests that a healthy network answers first, also on a loaded machine. */
const PATIENT = { stallLimitMs: 20_000, connectLimitMs: 20_000 }

test.each([
  { when: 'before a request', bytes: 0 },
  { when: 'within a part', bytes: 12 * MIB },
])('a network that stalls $when makes put unavailable in time', async ({ bytes }) => {
  await using proxy = await openStallingProxy(server.port)
  const endpoint = `http://127.0.0.1:${proxy.port}`
  const { repository, bucket } = await newBucket({ endpoint })
  const impatient = repositoryOf({ ...IMPATIENT, bucket, endpoint })
  proxy.stallAfter(bytes)
  await expect(impatient.put('a', randomBody(20 * MIB))).rejects.toMatchObject(
    failure(RepositoryCode.unavailable, 'does not answer in time'),
  )
  proxy.resume()
  await repository.put('a', body('x'))
  expect(await keysOf(repository)).toEqual(['a'])
})

test('a network that stalls within an object makes its reader unavailable in time', async () => {
  await using proxy = await openStallingProxy(server.port)
  const { repository: direct, bucket } = await newBucket()
  await direct.put('a', randomBody(20 * MIB))
  const behindProxy = { bucket, endpoint: `http://127.0.0.1:${proxy.port}` }
  const repository = repositoryOf({ ...IMPATIENT, ...behindProxy })
  const chunks = await repositoryOf({ ...PATIENT, ...behindProxy }).get('a')
  proxy.stallAfter(MIB)
  await expect(read(chunks)).rejects.toMatchObject(failure(RepositoryCode.unavailable, 'does not answer in time'))
  await expect(keysOf(repository)).rejects.toMatchObject({ code: RepositoryCode.unavailable })
  await expect(repository.delete(['a'])).rejects.toMatchObject({ code: RepositoryCode.unavailable })
})

test('an abort ends a put at once while the network stalls', async () => {
  await using proxy = await openStallingProxy(server.port)
  const { repository } = await newBucket({ endpoint: `http://127.0.0.1:${proxy.port}` })
  proxy.stallAfter(MIB)
  const stop = new AbortController()
  const reason = new Error('the server stops')
  async function* stopping(): AsyncGenerator<Uint8Array> {
    yield* randomBody(15 * MIB)
    setImmediate(() => stop.abort(reason))
    yield* randomBody(17 * MIB)
  }
  await expect(repository.put('a', stopping(), stop.signal)).rejects.toBe(reason)
})

test('a server without space is full, and accepts objects again when there is some', async () => {
  await using disk = await smallDisk(40)
  await using own = await startS3Server({ directory: join(disk.dir, 'buckets') })
  const { repository } = await newBucket({}, own)
  await repository.put('former', body('x'))
  const makeRoom = await disk.fill()
  await expect(repository.put('small', randomBody(MIB))).rejects.toMatchObject({ code: RepositoryCode.full })
  await expect(repository.put('large', randomBody(20 * MIB))).rejects.toMatchObject({ code: RepositoryCode.full })
  await makeRoom()
  await repository.put('small', randomBody(MIB))
  expect(await keysOf(repository)).toEqual(['former', 'small'])
})

test('a damaged object is read as it is, so that its reader finds it by the SHA-256', async () => {
  const { repository, directory } = await newBucket()
  const stored = await repository.put('a/b', randomBody(2 * MIB))
  await writeFile(join(directory, 'mooring/a/b'), 'damaged', { flag: 'r+' })
  const damaged = await read(await repository.get('a/b'))
  expect([damaged.length, sha256(damaged)]).not.toEqual([2 * MIB, stored.sha256])
  expect(damaged.subarray(0, 7).toString()).toBe('damaged')
})

test('objects of other programs in the bucket are not listed', async () => {
  const { repository, bucket } = await newBucket()
  await repository.put('a', body('x'))
  await repositoryOf({ bucket, prefix: 'mooring-other' }).put('b', body('x'))
  const all = repositoryOf({ bucket, prefix: '' })
  await all.put('mooring/c', body('x'))
  expect(await keysOf(repository)).toEqual(['a', 'c'])
  expect(await keysOf(all)).toEqual(['mooring-other/b', 'mooring/a', 'mooring/c'])
})

test('multipart uploads of crashed writers are removed after a day, those of others never', async () => {
  const { bucket } = await newBucket()
  const client = new S3Client({ endpoint: server.endpoint, region: 'us-east-1', credentials: ROOT_KEY, forcePathStyle: true })
  const sdk = await import('@aws-sdk/client-s3')
  const { Upload } = await import('@aws-sdk/lib-storage')
  for (const Key of ['mooring/a', 'other/b']) {
    const { UploadId } = await client.send(new CreateMultipartUploadCommand({ Bucket: bucket, Key }))
    await client.send(new UploadPartCommand({ Bucket: bucket, Key, UploadId, PartNumber: 1, Body: Buffer.alloc(100) }))
  }
  const unfinished = async () =>
    (await client.send(new ListMultipartUploadsCommand({ Bucket: bucket }))).Uploads?.map(({ Key }) => Key) ?? []
  let now = Date.now() + 86_000_000
  const uploads = createUnfinishedUploads({
    load: () => Promise.resolve({ client, sdk, Upload }),
    ...{ bucket, base: 'mooring/', now: () => now },
  })
  await uploads.removeSometimes(undefined)
  expect(await unfinished()).toEqual(['mooring/a', 'other/b'])
  now += 1_000_000
  await uploads.removeSometimes(undefined)
  expect(await unfinished()).toEqual(['mooring/a', 'other/b'])
  now += 3_600_000
  await uploads.removeSometimes(undefined)
  expect(await unfinished()).toEqual(['other/b'])
})

test('a failed upload leaves no parts behind', async () => {
  const { repository, directory, bucket } = await newBucket()
  await expect(repository.put('a', randomBody(20 * MIB, new Error('broken')))).rejects.toThrow('broken')
  expect(await listed(repository)).toEqual([])
  const client = new S3Client({ endpoint: server.endpoint, region: 'us-east-1', credentials: ROOT_KEY, forcePathStyle: true })
  expect((await client.send(new ListMultipartUploadsCommand({ Bucket: bucket }))).Uploads ?? []).toEqual([])
  expect(await readdir(directory)).not.toContain('mooring')
})
