import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MooringError } from '../../shared/errors.ts'
import { createDirectoryRepository } from './directory.ts'
import { isKeyPart } from './keys.ts'
import type { Repository } from './port.ts'
import { createS3Repository } from './s3.ts'

/** Code of an invalid repository URL. */
export const INVALID_URL = 'invalid_repository_url'

/** Name of a bucket: "Bucket naming rules" of the Amazon S3 user guide. Names that only other servers allow are not supported. */
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
/** Maximum length of a prefix: a key in S3 has at most 1024 bytes, prefix included. */
const PREFIX_CHARACTERS = 256

/** Completes the sentence "… must be". */
export const S3_RULE =
  's3://bucket or s3://bucket/prefix: a bucket of 3 to 63 characters a-z, 0-9, "." and "-", then at most 256 characters A-Z, a-z, 0-9, ".", "_", "-" and "/", without credentials, query and fragment'
const RULE = `the path of a directory that begins with "/", file:///path, or ${S3_RULE}`

/** Bucket, and prefix of the keys in it, without `/` at the ends. */
export interface BucketLocation {
  readonly bucket: string
  readonly prefix: string
}

/** Parses `s3://bucket/prefix`. Returns undefined for other text. */
export function parseS3Url(text: string): BucketLocation | undefined {
  if (!text.startsWith('s3://')) return undefined
  const [bucket = '', ...parts] = text.slice('s3://'.length).replace(/\/$/, '').split('/')
  const prefix = parts.join('/')
  if (!BUCKET.test(bucket) || bucket.includes('..') || prefix.length > PREFIX_CHARACTERS) return undefined
  return parts.every(isKeyPart) ? { bucket, prefix } : undefined
}

function parseDirectory(text: string): string | undefined {
  if (text.includes('\0')) return undefined
  if (text.startsWith('/')) return resolve(text)
  const url = text.startsWith('file:///') ? URL.parse(text) : null
  if (url?.search !== '' || url.hash !== '') return undefined
  try {
    return fileURLToPath(url)
  } catch {
    // An encoded slash, for example.
    return undefined
  }
}

/**
 * Opens the repository of a URL: the path of a directory, which must exist, `file:///path`, or `s3://bucket/prefix` with credentials, region and
 * endpoint as the AWS SDK reads them from environment and profile. Nothing is read or written yet.
 * @throws MooringError `invalid_repository_url`
 */
export function openRepository(url: string): Repository {
  const location = parseS3Url(url)
  if (location) return createS3Repository(location)
  const directory = parseDirectory(url)
  if (directory !== undefined) return createDirectoryRepository({ directory })
  // The URL may have credentials, and is not quoted.
  throw new MooringError(INVALID_URL, `The URL of the backup repository must be ${RULE}.`)
}
