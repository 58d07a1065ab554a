import { abortedBy, type S3 } from './s3-client.ts'

export interface UnfinishedUploadsDeps {
  readonly load: () => Promise<S3>
  readonly bucket: string
  /** Prefix of the repository's keys. */
  readonly base: string
  /** Returns ms since the epoch. Default: the system's time. */
  readonly now?: () => number
}

/** Removes multipart uploads that no writer completes: a bucket keeps, and bills, their parts for ever. */
export interface UnfinishedUploads {
  /** Aborts those that began a day ago, at most once an hour. Never rejects: a lack of permission for it must not stop backups. */
  removeSometimes(signal: AbortSignal | undefined): Promise<void>
}

const EVERY_MS = 3_600_000
/** Longer than any upload takes: an object has at most some GiB. */
const ABANDONED_MS = 86_400_000

export function createUnfinishedUploads({ load, bucket, base, now = Date.now }: UnfinishedUploadsDeps): UnfinishedUploads {
  let nextAt = 0

  async function remove(signal: AbortSignal | undefined): Promise<void> {
    const { client, sdk } = await load()
    const { Uploads = [] } = await client.send(
      new sdk.ListMultipartUploadsCommand({ Bucket: bucket, Prefix: base }),
      abortedBy(signal),
    )
    const old = Uploads.filter(({ Initiated }) => Initiated && now() - Initiated.getTime() > ABANDONED_MS)
    for (const { Key, UploadId } of old)
      await client.send(new sdk.AbortMultipartUploadCommand({ Bucket: bucket, Key, UploadId }), abortedBy(signal))
  }

  return {
    async removeSometimes(signal) {
      if (now() < nextAt) return
      nextAt = now() + EVERY_MS
      await remove(signal).catch(() => undefined)
    },
  }
}
