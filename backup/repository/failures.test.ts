import { expect, test } from 'vitest'
import { hasCode, MooringError } from '../../shared/errors.ts'
import { fileFailure } from './failures.ts'
import { RepositoryCode } from './port.ts'
import { s3Failure } from './s3-failures.ts'

const withCode = (code: string) => Object.assign(new Error(`${code}: failed, write`), { code })

test.each([
  { code: 'ENOSPC', gives: RepositoryCode.full, says: 'No space is left in /backups. Make space or enlarge the volume' },
  { code: 'EDQUOT', gives: RepositoryCode.full, says: 'The disk quota in /backups is reached. Raise it' },
  { code: 'ENOENT', gives: RepositoryCode.unavailable, says: 'The directory /backups does not exist. Create it' },
  {
    code: 'EACCES',
    gives: RepositoryCode.unavailable,
    says: 'No permission in /backups. Make the user of this process its owner',
  },
  { code: 'EPERM', gives: RepositoryCode.unavailable, says: 'The system forbids the operation in /backups.' },
  { code: 'EROFS', gives: RepositoryCode.unavailable, says: '/backups is mounted read-only. Check the disk' },
  { code: 'EIO', gives: RepositoryCode.unavailable, says: 'reports an input/output error. Check it' },
  { code: 'ESTALE', gives: RepositoryCode.unavailable, says: 'was exported anew. Mount it again' },
  { code: 'EMFILE', gives: RepositoryCode.unavailable, says: 'An operation in /backups failed (EMFILE).' },
])('fileFailure explains $code', ({ code, gives, says }) => {
  const failure = fileFailure(withCode(code), '/backups')
  expect(hasCode(failure, gives)).toBe(true)
  expect(failure.message).toContain(says)
  expect(hasCode(failure.cause, code)).toBe(true)
})

test('fileFailure and s3Failure return an error of the repository unchanged', () => {
  const failure = new MooringError(RepositoryCode.full, 'full')
  const request = { action: 's3:GetObject', bucket: 'b', name: 's3://b' } as const
  expect([fileFailure(failure, '/backups'), s3Failure(failure, request)]).toEqual([failure, failure])
})

/** Error as the SDK throws it, with the request that it keeps. */
const ofServer = (name: string, httpStatusCode?: number) =>
  Object.assign(new Error('You said: hunter2'), {
    name,
    $metadata: { httpStatusCode },
    $response: { headers: { authorization: 'hunter2' } },
  })
const denied = 'The credentials may not use s3:PutObject in the bucket backups. Allow s3:GetObject, s3:PutObject'

test.each([
  { error: ofServer('AccessDenied', 403), says: denied },
  { error: ofServer('SomethingForbidden', 403), says: `${denied}, s3:DeleteObject` },
  { error: ofServer('NoSuchBucket', 404), says: 'The bucket backups of s3://backups/m does not exist. Create it' },
  { error: ofServer('InvalidAccessKeyId', 403), says: 'does not know the access key. Set AWS_ACCESS_KEY_ID' },
  { error: ofServer('SignatureDoesNotMatch', 403), says: 'The secret key for the bucket backups is wrong.' },
  { error: ofServer('ExpiredToken', 400), says: 'The credentials for the bucket backups have expired. Renew them.' },
  { error: ofServer('RequestTimeTooSkewed', 403), says: 'The clock differs too much' },
  { error: ofServer('PermanentRedirect', 301), says: 'is in another region. Set AWS_REGION to it.' },
  { error: ofServer('SlowDown', 503), says: 'is overloaded or broken: it answers 503 SlowDown, also after retries.' },
  { error: ofServer('InvalidRequest', 400), says: 'The request s3:PutObject to s3://backups/m failed (400 InvalidRequest).' },
  { error: ofServer('TimeoutError'), says: 'The server of s3://backups/m does not answer in time.' },
  { error: withCode('ECONNREFUSED'), says: 'The server of s3://backups/m refuses connections.' },
  { error: withCode('ENOTFOUND'), says: 'The host of s3://backups/m is unknown.' },
  { error: withCode('DEPTH_ZERO_SELF_SIGNED_CERT'), says: 'Name its CA in NODE_EXTRA_CA_CERTS.' },
  { error: new Error('Region is missing'), says: 'The region of the bucket backups is unknown. Set AWS_REGION.' },
  { error: ofServer('CredentialsProviderError'), says: 'There are no credentials for the bucket backups. Set AWS_ACCESS_KEY_ID' },
  { error: 'odd', says: 'failed (unknown reason)' },
  {
    error: ofServer('QuotaExceeded', 403),
    gives: RepositoryCode.full,
    says: 's3://backups/m has no space left (QuotaExceeded).',
  },
  { error: ofServer('XMinioStorageFull', 507), gives: RepositoryCode.full, says: 'has no space left (XMinioStorageFull)' },
  { error: ofServer('Unknown', 507), gives: RepositoryCode.full, says: 'has no space left' },
])('s3Failure says "$says", without what the server says', ({ error, gives = RepositoryCode.unavailable, says }) => {
  const failure = s3Failure(error, { action: 's3:PutObject', bucket: 'backups', name: 's3://backups/m' })
  expect(hasCode(failure, gives)).toBe(true)
  expect(failure.message).toContain(says)
  expect(JSON.stringify([failure, failure.message, failure.cause, String(failure.cause)])).not.toContain('hunter2')
})
