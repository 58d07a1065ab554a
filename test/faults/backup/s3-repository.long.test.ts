import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll } from 'vitest'
import { createS3Repository } from '../../../backup/repository/s3.ts'
import { conformance } from '../../conformance/repository.ts'
import { BUILD_MS, ROOT_KEY, type S3Server, startS3Server } from '../../support/backup/s3-server.ts'

let server: S3Server

beforeAll(async () => {
  server = await startS3Server()
}, BUILD_MS)
afterAll(() => server[Symbol.asyncDispose]())

const options = () => ({ endpoint: server.endpoint, region: 'us-east-1', credentials: ROOT_KEY })

conformance('the S3 repository', async () => {
  const bucket = `test-${randomUUID()}`
  await server.createBucket(bucket)
  return {
    repository: createS3Repository({ bucket, prefix: 'mooring/backups', ...options() }),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
})
