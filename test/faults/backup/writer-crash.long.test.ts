import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { openRepository } from '../../../backup/repository/open.ts'
import type { Repository } from '../../../backup/repository/port.ts'
import { createS3Repository } from '../../../backup/repository/s3.ts'
import { keysOf, read, sha256 } from '../../conformance/repository/test-repository.ts'
import { BUILD_MS, ROOT_KEY, s3Program, startS3Server } from '../../support/backup/s3-server.ts'

const program = fileURLToPath(new URL('../../support/backup/endless-repository-writer.ts', import.meta.url))
/** Written objects after which the writer is killed, some of the next ones half-written. */
const ROUNDS = [1, 2, 3, 5, 8, 13, 21]

interface Subject extends AsyncDisposable {
  readonly repository: Repository
  readonly url: string
  readonly env: NodeJS.ProcessEnv
}

async function directory(): Promise<Subject> {
  const { path, [Symbol.asyncDispose]: remove } = await mkdtempDisposable(join(tmpdir(), 'mooring-crash-'))
  return { repository: openRepository(path), url: path, env: process.env, [Symbol.asyncDispose]: remove }
}

async function bucket(): Promise<Subject> {
  const server = await startS3Server()
  await server.createBucket('backups')
  const place = { bucket: 'backups', prefix: 'mooring', endpoint: server.endpoint, region: 'us-east-1', credentials: ROOT_KEY }
  const credentials = { AWS_ACCESS_KEY_ID: ROOT_KEY.accessKeyId, AWS_SECRET_ACCESS_KEY: ROOT_KEY.secretAccessKey }
  return {
    repository: createS3Repository(place),
    url: 's3://backups/mooring',
    env: { ...process.env, ...credentials, AWS_REGION: 'us-east-1', AWS_ENDPOINT_URL_S3: server.endpoint },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

/** Runs the writer until it has written `objects`, then kills it. Returns the SHA-256 of each key that it acknowledged. */
async function killedAfter(objects: number, { url, env }: Subject, prefix: string): Promise<ReadonlyMap<string, string>> {
  const child = spawn(process.execPath, [program, url, prefix], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const exit = once(child, 'exit')
  const written = new Map<string, string>()
  let count = 0
  for await (const line of createInterface({ input: child.stdout })) {
    // The last line may be incomplete.
    const [, key = '', hash = ''] = /^(\S+) (\w+)\.$/.exec(line) ?? []
    if (key !== '') written.set(key, hash)
    count += 1
    if (count === objects) child.kill('SIGKILL')
  }
  expect(await exit).toEqual([null, 'SIGKILL'])
  return written
}

/** Returns the SHA-256 of an object, or `partial` when its length differs from that in its first line. */
async function stateOf(repository: Repository, key: string): Promise<string> {
  const bytes = await read(await repository.get(key))
  const end = bytes.indexOf('\n')
  return end > 0 && bytes.length - end - 1 === Number(bytes.subarray(0, end).toString()) ? sha256(bytes) : 'partial'
}

beforeAll(s3Program, BUILD_MS)

describe.each([
  { name: 'the directory repository', open: directory },
  { name: 'the S3 repository', open: bucket },
])('$name', ({ open }) => {
  test('has only whole objects after kill -9 of a writer, and all that it acknowledged', async () => {
    await using subject = await open()
    for (const objects of ROUNDS) {
      const written = await killedAfter(objects, subject, `round-${objects}`)
      const keys = await keysOf(subject.repository, `round-${objects}/`)
      const states = new Map<string, string>()
      for (const key of keys) states.set(key, await stateOf(subject.repository, key))
      expect([...states.values()]).not.toContain('partial')
      const lost = [...written].filter(([key, hash]) =>
        key.endsWith('state.json') ? !states.has(key) : states.get(key) !== hash,
      )
      expect(lost).toEqual([])
    }
  })
})
