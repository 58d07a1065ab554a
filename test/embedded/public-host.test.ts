import { execFile } from 'node:child_process'
import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Instance, Tunnel } from '../support/api/answers.ts'
import { running, writeSsh } from '../support/edge/openssh.ts'
import { startLocalServer } from '../support/edge/visitor.ts'
import { type Mooring, startMooring } from '../support/deployment/mooring.ts'
import { LATER } from '../support/patience.ts'

/** Mooring with a public host name that does not resolve here: each client gets the address explicitly instead of by DNS. */

const HOST = 'my.example.org'
const TUNNELS = '/v1/organizations/default/namespaces/default/tunnels'
const run = promisify(execFile)

const cleanup = new AsyncDisposableStack()
let directory: string
let mooring: Mooring
const args = (host: string) => ['--listen', '0.0.0.0', '--public-host', host, '--domain', 't.example.org']
beforeAll(async () => {
  directory = cleanup.use(await mkdtempDisposable(join(tmpdir(), 'mooring-public-'))).path
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'test', '-f', join(directory, 'key')])
  mooring = await startMooring({ dataDir: join(directory, 'data'), args: args(HOST) })
  cleanup.defer(() => mooring[Symbol.asyncDispose]())
})
afterAll(() => cleanup.disposeAsync())

const newInstance = async (): Promise<Instance> => {
  const body = { identifier: 'PR #7', region: mooring.ready.region, motor: 'postgresql-15.4.0' }
  return (await mooring.call('POST', '/v1/instances', { body })).body.data.instance
}

/** Connects with the unchanged URI, the returned CA and verification of the server's name. */
async function verified({ uri, tls }: Instance, host: string): Promise<string> {
  const ca = join(directory, 'instance-ca.pem')
  await writeFile(ca, tls.ca ?? '')
  expect(new URL(uri).hostname).toBe(host)
  const env = { ...process.env, PGHOSTADDR: '127.0.0.1', PGSSLROOTCERT: ca }
  const { stdout } = await run('psql', [uri.replace('sslmode=require', 'sslmode=verify-full'), '-Atc', 'select 1'], { env })
  return stdout.trim()
}

test('the ready file and the welcome text name the public host; the API URLs keep the local address', async () => {
  expect(mooring.ready).toMatchObject({ sshHost: HOST, domain: 't.example.org' })
  expect(mooring.ready.sharedUrl).toMatch(/^https:\/\/127\.0\.0\.1:/)
  const { port } = new URL(mooring.ready.sharedUrl)
  // The text follows the ready file.
  await expect.poll(() => mooring.output(), LATER).toContain(`from elsewhere https://${HOST}:${port}`)
})

test('the API has a certificate for the public host', async () => {
  const { port } = new URL(mooring.ready.sharedUrl)
  const to = ['--resolve', `${HOST}:${port}:127.0.0.1`, '--cacert', mooring.ready.ca]
  const { stdout } = await run('curl', ['-sS', ...to, `https://${HOST}:${port}/healthz`])
  expect(stdout).toContain('ok')
})

test('an instance has the public host and a certificate for it', async () => {
  const instance = await newInstance()
  expect(instance).toMatchObject({ host: HOST, tls: { required: true } })
  expect(await verified(instance, HOST)).toBe('1')
})

test('the SSH command of a tunnel connects to the public host, and visitors reach the tunnel', async () => {
  const publicKey = (await readFile(join(directory, 'key.pub'), 'utf8')).trim()
  const body = { name: 'web', regionId: 1, config: { authorizedKeys: [publicKey] } }
  const tunnel: Tunnel = (await mooring.call('POST', TUNNELS, { body })).body.data.tunnel
  expect(tunnel.endpoint.sshHost).toBe(HOST)
  expect(tunnel.directUrl).toBe(`https://${tunnel.hostname}.t.example.org:${mooring.ready.httpsPort}`)
  await using local = await startLocalServer()
  const there = `ProxyCommand=${process.execPath} -e 's=require("net").connect(%p,"127.0.0.1");process.stdin.pipe(s).pipe(process.stdout)'`
  await writeSsh(directory, { options: [`IdentityFile=${join(directory, 'key')}`, there], localPort: local.port })
  const env = { PATH: `${directory}:${process.env.PATH ?? ''}`, HOME: directory }
  await using client = running(['sh', '-c', tunnel.sshCommand], env)
  const { hostname } = new URL(tunnel.directUrl)
  const to = ['--resolve', `${hostname}:${mooring.ready.httpsPort}:127.0.0.1`, '--cacert', mooring.ready.ca]
  await vi.waitFor(async () => {
    const { stdout } = await run('curl', ['-sS', '-o', '/dev/null', '-w', '%{http_code}', ...to, tunnel.directUrl])
    expect(stdout, client.said()).toBe('200')
  }, LATER)
})

test('an existing instance has a changed public host after a restart, with a certificate for it', async () => {
  const { id } = await newInstance()
  await mooring[Symbol.asyncDispose]()
  mooring = await startMooring({ dataDir: join(directory, 'data'), args: args('other.example.org') })
  await vi.waitFor(async () => {
    const { body } = await mooring.call('GET', `/v1/instances/${id}`)
    expect(body.data.instance.host).toBe('other.example.org')
  }, LATER)
  const { instance } = (await mooring.call('POST', `/v1/instances/${id}/password`)).body.data
  expect(await verified(instance, 'other.example.org')).toBe('1')
})
