import { codeOf, MooringError } from '../../shared/errors.ts'
import { full, unavailable } from './failures.ts'

/** IAM action that a request needs. Messages name it, so that an administrator can allow it. */
export type S3Action = 's3:PutObject' | 's3:GetObject' | 's3:ListBucket' | 's3:DeleteObject'

/** Request that failed. */
export interface S3Request {
  readonly action: S3Action
  readonly bucket: string
  /** Name of the repository. */
  readonly name: string
}

type Explain = (request: S3Request) => string

const CREDENTIALS =
  'Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or another source of credentials of the AWS SDK, such as a profile or the role of the machine.'

/** Messages by the name of the error that the server or the SDK reports. */
const REASONS: Readonly<Record<string, Explain>> = {
  NoSuchBucket: ({ bucket, name }) =>
    `The bucket ${bucket} of ${name} does not exist. Create it, or correct the name of the bucket or the endpoint.`,
  AccessDenied: ({ bucket, action }) =>
    `The credentials may not use ${action} in the bucket ${bucket}. Allow s3:GetObject, s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload for its objects, and s3:ListBucket for the bucket.`,
  InvalidAccessKeyId: ({ bucket }) => `The server of the bucket ${bucket} does not know the access key. ${CREDENTIALS}`,
  SignatureDoesNotMatch: ({ bucket }) => `The secret key for the bucket ${bucket} is wrong. ${CREDENTIALS}`,
  ExpiredToken: ({ bucket }) => `The credentials for the bucket ${bucket} have expired. Renew them.`,
  CredentialsProviderError: ({ bucket }) => `There are no credentials for the bucket ${bucket}. ${CREDENTIALS}`,
  RequestTimeTooSkewed: ({ bucket }) =>
    `The clock differs too much from that of the server of the bucket ${bucket}. Correct the time of this machine.`,
  PermanentRedirect: ({ bucket }) => `The bucket ${bucket} is in another region. Set AWS_REGION to it.`,
  AuthorizationHeaderMalformed: ({ bucket }) => `The bucket ${bucket} is in another region. Set AWS_REGION to it.`,
  TimeoutError: ({ name }) => `The server of ${name} does not answer in time. Check the network and the server.`,
  ECONNREFUSED: ({ name }) => `The server of ${name} refuses connections. Check the endpoint, and that the server runs.`,
  ENOTFOUND: ({ name }) => `The host of ${name} is unknown. Check the endpoint, the region and DNS.`,
  EAI_AGAIN: ({ name }) => `DNS does not answer for the host of ${name}. Check DNS and the network.`,
  EPROTO: ({ name }) => `The server of ${name} does not speak TLS. Check whether the endpoint begins with http or https.`,
}

const REGION_MISSING = 'Region is missing'
const TLS = /^(CERT_|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|ERR_TLS)/
/** Error names by which servers other than AWS report a full bucket or disk. */
const FULL = /quota|storage_?full|cap_?exceeded|insufficientcapacity|nospaceleft|entityisfull/i
const INSUFFICIENT_STORAGE = 507

/**
 * Returns the repository's error for a failed request. The SDK's error is neither its cause nor quoted in its message: it has the whole request,
 * with a session's token.
 */
export function s3Failure(failed: unknown, request: S3Request): Error {
  if (failed instanceof MooringError) return failed
  const code = nameOf(failed)
  const status = statusOf(failed)
  const error = new Error(`${request.action}: ${status ?? 'no response'} ${code}`)
  if (status === INSUFFICIENT_STORAGE || FULL.test(code))
    return full(`${request.name} has no space left (${code}). Raise its quota, or keep fewer days of backups.`, error)
  return unavailable((explainKnown(code, failed) ?? explainOther(code, status))(request), error)
}

function explainKnown(code: string, error: unknown): Explain | undefined {
  const known = REASONS[code]
  if (known) return known
  if (TLS.test(code))
    return ({ name }) => `The certificate of the server of ${name} is not trusted (${code}). Name its CA in NODE_EXTRA_CA_CERTS.`
  if (error instanceof Error && error.message.startsWith(REGION_MISSING))
    return ({ bucket }) => `The region of the bucket ${bucket} is unknown. Set AWS_REGION.`
  return undefined
}

function explainOther(code: string, status: number | undefined): Explain {
  const answer = status === undefined ? code : `${status} ${code}`
  if (status === 403) return (request) => `${REASONS.AccessDenied?.(request) ?? ''} The server answers ${answer}.`
  if (status !== undefined && status >= 500)
    return ({ name }) =>
      `The server of ${name} is overloaded or broken: it answers ${answer}, also after retries. Check its state.`
  return ({ name, action }) => `The request ${action} to ${name} failed (${answer}). Check the endpoint and the network.`
}

/** Whether the error says that there is no object with the key. */
export const isNoObject = (error: unknown): boolean => {
  const code = nameOf(error)
  return code === 'NoSuchKey' || code === 'NotFound'
}

/** Returns the system's code or the name of the SDK's error. A failed connection with several addresses is an AggregateError with a code. */
function nameOf(error: unknown): string {
  const code = codeOf(error)
  if (code !== undefined && (REASONS[code] || TLS.test(code))) return code
  return error instanceof Error && error.name !== 'Error' ? error.name : (code ?? 'unknown reason')
}

function statusOf(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null || !('$metadata' in error)) return undefined
  const metadata = error.$metadata
  if (typeof metadata !== 'object' || metadata === null || !('httpStatusCode' in metadata)) return undefined
  return typeof metadata.httpStatusCode === 'number' ? metadata.httpStatusCode : undefined
}
