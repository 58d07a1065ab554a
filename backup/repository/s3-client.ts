import type * as sdk from '@aws-sdk/client-s3'
import type { Upload } from '@aws-sdk/lib-storage'

export interface S3ClientOptions {
  /** URL of the server; default: that of the SDK's settings (AWS_ENDPOINT_URL_S3), else AWS. */
  readonly endpoint?: string | undefined
  /** Default: that of the SDK's settings (AWS_REGION). */
  readonly region?: string | undefined
  /** Default: the SDK's chain of sources, such as AWS_ACCESS_KEY_ID, a profile, or the role of the machine. */
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string } | undefined
  /** Time limit in ms for opening a connection. Default: 10 s. */
  readonly connectLimitMs?: number
  /** Time without a byte in either direction in ms, after which a request fails and is retried. Default: 30 s. */
  readonly stallLimitMs?: number
}

const CONNECT_LIMIT_MS = 10_000
const STALL_LIMIT_MS = 30_000

/** The SDK with a client: the SDK is loaded late, so no other file imports its values. */
export interface S3 {
  readonly client: sdk.S3Client
  readonly sdk: typeof sdk
  readonly Upload: typeof Upload
}

/** Returns a function that loads the SDK when it is first called: it takes 0.1 s and 36 MB, which a process without a bucket does not need. */
export function createS3Loader(options: S3ClientOptions): () => Promise<S3> {
  let loading: Promise<S3> | undefined
  return () => (loading ??= load(options))
}

async function load(options: S3ClientOptions): Promise<S3> {
  const [sdk, { Upload }] = await Promise.all([import('@aws-sdk/client-s3'), import('@aws-sdk/lib-storage')])
  const { endpoint, region, credentials, connectLimitMs = CONNECT_LIMIT_MS, stallLimitMs = STALL_LIMIT_MS } = options
  const client = new sdk.S3Client({
    ...(endpoint !== undefined && { endpoint }),
    ...(region !== undefined && { region }),
    ...(credentials && { credentials }),
    // Only AWS is sure to have DNS records for hosts with the name of a bucket.
    forcePathStyle: endpoint !== undefined || hasEndpoint(process.env),
    // A damaged object is found by its SHA-256 (`backup/postgresql/catalog/read-object.ts`), with an error of its own.
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: { connectionTimeout: connectLimitMs, socketTimeout: stallLimitMs },
  })
  return { client, sdk, Upload }
}

/** Options of a request that an abort of the signal ends. */
export const abortedBy = (signal: AbortSignal | undefined) => (signal ? { abortSignal: signal } : {})

const hasEndpoint = (env: NodeJS.ProcessEnv): boolean => Boolean(env.AWS_ENDPOINT_URL_S3 ?? env.AWS_ENDPOINT_URL)
