import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { until } from '../../bench/metrics.ts'
import { CACHE } from '../debian-packages.ts'
import { freePort } from '../free-port.ts'

const VERSION = 'v1.8.0'
const MODULE = 'github.com/versity/versitygw/cmd/versitygw'
const run = promisify(execFile)

/** Time of the first build in ms, for the hook that starts the first server of a file. */
export const BUILD_MS = 600_000

/** Builds the S3 server versitygw once, into the user's cache. Returns its path. */
export async function s3Program(): Promise<string> {
  const directory = join(CACHE, `versitygw-${VERSION}`)
  const path = join(directory, 'versitygw')
  const [there] = await Promise.allSettled([access(path)])
  if (there.status === 'rejected') {
    await mkdir(directory, { recursive: true })
    const PATH = `${process.env.PATH ?? ''}:/usr/local/go/bin`
    await run('go', ['install', `${MODULE}@${VERSION}`], { env: { ...process.env, PATH, GOBIN: directory } })
  }
  return path
}

/** Key of an administrator. */
export const ROOT_KEY = { accessKeyId: 'mooring-test', secretAccessKey: 'secret-of-the-test' }

export interface S3ServerOptions {
  /** Directory of the buckets; default: a temporary one. */
  readonly directory?: string
  /** Address on which the server listens; default: 127.0.0.1. */
  readonly host?: string
  readonly port?: number
}

/** S3 server that keeps each bucket as a directory. */
export interface S3Server extends AsyncDisposable {
  readonly endpoint: string
  readonly port: number
  /** Creates a bucket and returns its directory, in which each object is a file. */
  createBucket(bucket: string): Promise<string>
  /** Creates a user without rights in any bucket, and returns its key. */
  createUser(): Promise<typeof ROOT_KEY>
  /** Kills the server. Its buckets stay. */
  stop(): Promise<void>
  start(): Promise<void>
}

export async function startS3Server(options: S3ServerOptions = {}): Promise<S3Server> {
  const path = await s3Program()
  await using cleanup = new AsyncDisposableStack()
  const work = await mkdtemp(join(tmpdir(), 'mooring-s3-'))
  cleanup.defer(() => rm(work, { recursive: true, force: true, maxRetries: 5 }))
  const directory = options.directory ?? join(work, 'buckets')
  const [sidecar, users] = [join(work, 'attributes'), join(work, 'users')]
  for (const each of [directory, sidecar, users]) await mkdir(each, { recursive: true })
  const port = options.port ?? (await freePort())
  const { host = '127.0.0.1' } = options
  const endpoint = `http://${host}:${port}`
  const env = { ...process.env, ROOT_ACCESS_KEY: ROOT_KEY.accessKeyId, ROOT_SECRET_KEY: ROOT_KEY.secretAccessKey }
  let child: ChildProcess | undefined

  async function stop(): Promise<void> {
    const running = child
    child = undefined
    if (running?.exitCode !== null) return
    const ended = once(running, 'exit')
    running.kill('SIGKILL')
    await ended
  }

  async function start(): Promise<void> {
    const args = ['--port', `${host}:${port}`, '--iam-dir', users, '--quiet', 'posix', '--sidecar', sidecar, directory]
    child = spawn(path, args, { env, stdio: 'ignore' })
    await until(`an S3 server on port ${port}`, () =>
      fetch(endpoint).then(
        () => true,
        () => false,
      ),
    )
  }

  cleanup.defer(stop)
  await start()
  const ownership = cleanup.move()
  return {
    ...{ endpoint, port, stop, start },
    async createBucket(bucket) {
      const { CreateBucketCommand, S3Client } = await import('@aws-sdk/client-s3')
      const client = new S3Client({ endpoint, region: 'us-east-1', credentials: ROOT_KEY, forcePathStyle: true })
      await client.send(new CreateBucketCommand({ Bucket: bucket }))
      client.destroy()
      return join(directory, bucket)
    },
    async createUser() {
      const key = { accessKeyId: 'mooring-user', secretAccessKey: 'secret-of-the-user' }
      const admin = ['admin', '--access', ROOT_KEY.accessKeyId, '--secret', ROOT_KEY.secretAccessKey, '--endpoint-url', endpoint]
      const user = ['create-user', '--access', key.accessKeyId, '--secret', key.secretAccessKey, '--role', 'user']
      await run(path, [...admin, ...user])
      return key
    },
    [Symbol.asyncDispose]: () => ownership.disposeAsync(),
  }
}
