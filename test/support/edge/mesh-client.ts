import { execFile, spawn } from 'node:child_process'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { mkdtemp, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { DOMAIN, type MeshFixture } from './mesh-edges.ts'

const run = promisify(execFile)

export interface Key {
  readonly file: string
  readonly publicKey: string
}

export async function makeKey({ directory }: MeshFixture): Promise<Key> {
  const file = join(await mkdtemp(join(directory, 'user-')), 'id')
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'test', '-f', file])
  return { file, publicKey: (await readFile(`${file}.pub`, 'utf8')).trim() }
}

export interface StockClient extends AsyncDisposable {
  readonly said: () => string
  readonly exited: Promise<number | null>
  /** Suspends the client: it stays connected and does nothing. */
  freeze(): void
}

/** Starts the machine's ssh client, which forwards the tunnel to a port of this machine. */
export async function connectClient(
  fixture: MeshFixture,
  {
    sshPort,
    hostname,
    key,
    target,
  }: { readonly sshPort: number; readonly hostname: string; readonly key: Key; readonly target: number },
): Promise<StockClient> {
  const options = [
    ...['BatchMode=yes', 'IdentitiesOnly=yes', 'IdentityAgent=none', 'StrictHostKeyChecking=yes', 'ExitOnForwardFailure=yes'],
    ...[`IdentityFile=${key.file}`, `UserKnownHostsFile=${await fixture.knownHosts([sshPort])}`],
  ].flatMap((option) => ['-o', option])
  const to = ['-p', String(sshPort), '-R', `${hostname}:80:127.0.0.1:${target}`, `${hostname}@127.0.0.1`]
  const child = spawn('ssh', ['-F', 'none', '-N', ...options, ...to], { stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve))
  return {
    said: () => said,
    exited,
    freeze: () => void child.kill('SIGSTOP'),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await exited
    },
  }
}

export interface Visit {
  readonly status: number
  readonly error: string | undefined
  readonly body: string
}

interface VisitOptions {
  readonly port: number
  readonly hostname: string
  readonly path?: string
  /** PEM of the CA; plain HTTP without it. */
  readonly ca?: string | undefined
}

/** Sends a request on a new connection. */
export async function visit({ port, hostname, path = '/', ca }: VisitOptions): Promise<Visit> {
  const host = `${hostname}.${DOMAIN}`
  const about = { host: '127.0.0.1', port, path, headers: { Host: host }, agent: false as const }
  const request = ca === undefined ? httpRequest(about) : httpsRequest({ ...about, servername: host, ca })
  request.end()
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve).once('error', reject)
  })
  const error = answer.headers['mooring-error']
  return { status: answer.statusCode ?? 0, error: typeof error === 'string' ? error : undefined, body: await text(answer) }
}
