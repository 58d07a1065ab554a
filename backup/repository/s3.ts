import { once } from 'node:events'
import { Readable } from 'node:stream'
import { notFound } from './failures.ts'
import { partsOfKey, partsOfPrefix } from './keys.ts'
import { measured } from './measured-body.ts'
import type { Entry, Repository, Stored } from './port.ts'
import { abortedBy, createS3Loader, type S3ClientOptions } from './s3-client.ts'
import { isNoObject, type S3Action, s3Failure } from './s3-failures.ts'
import { createUnfinishedUploads } from './s3-unfinished.ts'

export interface S3RepositoryOptions extends S3ClientOptions {
  readonly bucket: string
  /** Prefix of the repository's keys, without `/` at its ends. Empty when the whole bucket is the repository. */
  readonly prefix: string
}

/** Size of a part. An upload has {@link PARALLEL_PARTS} parts in memory, and one that is being filled. */
const PART_BYTES = 8 * 1024 * 1024
const PARALLEL_PARTS = 2
/** Maximum number of keys in one DeleteObjects request. */
const DELETE_KEYS = 1_000

/** Keeps each object in a bucket of S3, or of a server with the same API. Uploads have checksums, which the server verifies. */
export function createS3Repository({ bucket, prefix, ...options }: S3RepositoryOptions): Repository {
  const name = prefix === '' ? `s3://${bucket}` : `s3://${bucket}/${prefix}`
  const base = prefix === '' ? '' : `${prefix}/`
  const load = createS3Loader(options)
  const unfinished = createUnfinishedUploads({ load, bucket, base })
  const fullKey = (key: string): string => base + partsOfKey(key).join('/')
  const failure = (error: unknown, action: S3Action) => s3Failure(error, { action, bucket, name })

  /** Runs requests. @throws the reason of an abort, or the repository's error */
  async function attempt<T>(action: S3Action, signal: AbortSignal | undefined, act: () => Promise<T>): Promise<T> {
    signal?.throwIfAborted()
    try {
      return await act()
    } catch (error) {
      signal?.throwIfAborted()
      throw failure(error, action)
    }
  }

  async function upload(key: string, body: Readable, signal: AbortSignal | undefined): Promise<void> {
    const { client, Upload } = await load()
    const params = { Bucket: bucket, Key: key, Body: body }
    const transfer = new Upload({ client, params, queueSize: PARALLEL_PARTS, partSize: PART_BYTES })
    const abort = () => void transfer.abort()
    signal?.addEventListener('abort', abort, { once: true })
    try {
      signal?.throwIfAborted()
      await transfer.done()
    } finally {
      signal?.removeEventListener('abort', abort)
    }
  }

  async function put(key: string, body: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<Stored> {
    const object = fullKey(key)
    const source = measured(body, signal)
    const stream = Readable.from(source.chunks)
    try {
      await upload(object, stream, signal)
      return source.stored()
    } catch (error) {
      await ended(stream)
      source.throwFailure()
      throw failure(error, 's3:PutObject')
    }
  }

  async function* read(body: Readable, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array> {
    try {
      for await (const chunk of body as AsyncIterable<Uint8Array>) {
        signal?.throwIfAborted()
        yield chunk
      }
    } catch (error) {
      signal?.throwIfAborted()
      throw failure(error, 's3:GetObject')
    }
  }

  async function* list(start: string, signal: AbortSignal | undefined): AsyncGenerator<Entry> {
    const { client, sdk } = await attempt('s3:ListBucket', signal, load)
    const pages = sdk.paginateListObjectsV2({ client }, { Bucket: bucket, Prefix: start }, abortedBy(signal))
    for (;;) {
      const { value: page, done } = await attempt('s3:ListBucket', signal, () => pages.next())
      if (done === true) break
      for (const { Key = '', Size = 0 } of page.Contents ?? [])
        if (isOwn(Key)) yield { key: Key.slice(base.length), sizeBytes: Size }
    }
    await unfinished.removeSometimes(signal)
  }

  /** Whether the key is valid in a repository: other programs may keep objects in the bucket, such as markers of folders. */
  function isOwn(key: string): boolean {
    try {
      return fullKey(key.slice(base.length)) === key
    } catch {
      return false
    }
  }

  async function remove(keys: readonly string[], signal: AbortSignal | undefined): Promise<void> {
    const { client, sdk } = await load()
    const command = new sdk.DeleteObjectsCommand({
      Bucket: bucket,
      Delete: { Objects: keys.map((Key) => ({ Key })), Quiet: true },
    })
    const { Errors = [] } = await client.send(command, abortedBy(signal))
    const [first] = Errors.filter(({ Code }) => Code !== 'NoSuchKey')
    if (first) throw Object.assign(new Error(first.Code), { name: first.Code ?? 'unknown reason' })
  }

  return {
    name,
    put,
    async get(key, signal) {
      const object = fullKey(key)
      const { client, sdk } = await attempt('s3:GetObject', signal, load)
      const command = new sdk.GetObjectCommand({ Bucket: bucket, Key: object })
      try {
        const { Body } = await client.send(command, abortedBy(signal))
        if (Body instanceof Readable) return read(Body, signal)
        throw new TypeError('the response has no body')
      } catch (error) {
        signal?.throwIfAborted()
        throw isNoObject(error) ? notFound(name, key) : failure(error, 's3:GetObject')
      }
    },
    list: (start, signal) =>
      list(
        base +
          partsOfPrefix(start)
            .map((part) => `${part}/`)
            .join(''),
        signal,
      ),
    async delete(keys, signal) {
      const objects = keys.map(fullKey)
      for (let from = 0; from < objects.length; from += DELETE_KEYS)
        await attempt('s3:DeleteObject', signal, () => remove(objects.slice(from, from + DELETE_KEYS), signal))
    },
  }
}

/** Ends the body of a failed upload, so that its files and connections are released when the upload's promise rejects. */
async function ended(stream: Readable): Promise<void> {
  if (stream.closed) return
  const closed = once(stream, 'close').catch(() => undefined)
  stream.destroy()
  await closed
}
