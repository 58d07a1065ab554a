import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { answered } from '../../support/edge/raw-http.ts'
import { currentOpenSsh, forwardTo, running, sshUser, type SshUser } from '../../support/edge/openssh.ts'
import { startWholeEdge, type WholeEdge } from '../../support/edge/whole-edge.ts'
import { freshHostname } from '../../support/edge/ssh-edge.ts'
import { SOON } from '../../support/patience.ts'

const run = promisify(execFile)
const MIB = 1024 * 1024

const cleanup = new AsyncDisposableStack()
let edge: WholeEdge
let user: SshUser
let backend: Server
let port: number
let current: readonly string[]

beforeAll(async () => {
  current = await currentOpenSsh()
  edge = cleanup.use(await startWholeEdge())
  user = cleanup.use(await sshUser(edge))
  const large = Buffer.alloc(8 * MIB, 'x')
  await writeFile(upload(), large)
  backend = createServer((req, res) => {
    let bytes = 0
    req.on('data', (chunk: Buffer) => (bytes += chunk.length))
    req.on('end', () => res.end(req.url === '/large' ? large : `${req.method ?? ''} ${req.url ?? ''} ${bytes}`))
  }).listen(0, '127.0.0.1')
  cleanup.defer(() => {
    backend.closeAllConnections()
    backend.close()
  })
  await once(backend, 'listening')
  port = (backend.address() as AddressInfo).port
})
afterAll(async () => {
  expect(edge.logged()).toBe('')
  await cleanup.disposeAsync()
})

const upload = () => join(user.directory, 'large')

async function newTunnel(config: object = {}): Promise<string> {
  const hostname = freshHostname()
  await edge.set(hostname, { authorizedKeys: [user.publicKey], ...config })
  return hostname
}

const get = (hostname: string, path = '/') =>
  answered(edge.ports.http, `GET ${path} HTTP/1.1\r\nHost: ${hostname}.${edge.domain}\r\nConnection: close\r\n\r\n`)

const served = (hostname: string, said: () => string) =>
  vi.waitFor(async () => expect(await get(hostname), said()).toMatch(/200 OK[^]*GET \/ 0/), SOON)

/** Commands of supported clients that forward a tunnel to the backend. */
const clients: Readonly<Record<string, (hostname: string) => Promise<readonly string[]>>> = {
  'the OpenSSH of this machine': async (hostname) => ['ssh', ...user.options, ...forwardTo(edge, hostname, port)],
  'the newest OpenSSH': async (hostname) => [...current, ...user.options, ...forwardTo(edge, hostname, port)],
  autossh: async (hostname) => ['autossh', '-M', '0', ...user.options, ...forwardTo(edge, hostname, port)],
  async dropbear(hostname) {
    const key = join(user.directory, `${hostname}.dropbear`)
    await run('dropbearconvert', ['openssh', 'dropbear', user.identity, key])
    return ['dbclient', '-y', '-y', '-N', '-T', '-i', key, ...forwardTo(edge, hostname, port)]
  },
}

describe.each(Object.entries(clients))('%s', (_name, command) => {
  test('serves small and large requests and responses', async () => {
    const hostname = await newTunnel()
    await using client = running(await command(hostname))
    await served(hostname, client.said)
    expect((await get(hostname, '/large')).length).toBeGreaterThan(8 * MIB)
    const url = `http://127.0.0.1:${edge.ports.http}/upload`
    const curl = ['--silent', '--header', `Host: ${hostname}.${edge.domain}`, '--data-binary', `@${upload()}`, url]
    expect((await run('curl', curl)).stdout).toBe(`POST /upload ${8 * MIB}`)
  })
})

test.each([
  { names: 'localhost', options: [] },
  { names: 'an empty address', options: ['-g'] },
])('dropbear without a bind address sends $names, and serves', async ({ options }) => {
  const hostname = await newTunnel()
  const [program = '', ...args] = (await clients.dropbear?.(hostname)) ?? []
  const own = args.map((arg) => arg.replace(`${hostname}:80:`, '80:'))
  await using client = running([program, ...options, ...own])
  await served(hostname, client.said)
})

test('the newest OpenSSH shows that the edge has no subsystem', async () => {
  const hostname = await newTunnel()
  const options = user.options.filter((option) => option !== '-N')
  await using client = running([...current, ...options, '-s', '-p', String(edge.ports.ssh), `${hostname}@127.0.0.1`, 'sftp'])
  expect(await client.exited).toBe(1)
  expect(client.said()).toContain('Mooring: there is no "sftp" here.')
})

test('the newest OpenSSH shows no warning about post-quantum key exchange', async () => {
  const hostname = await newTunnel()
  const { stderr } = await run(current[0] ?? '', [...current.slice(1), '-V'])
  const [, major = '', minor = ''] = /OpenSSH_(\d+)\.(\d+)/.exec(stderr) ?? []
  // OpenSSH warns from version 10.1 on.
  expect(Number(major) * 100 + Number(minor)).toBeGreaterThanOrEqual(1001)
  await using client = running([...current, '-v', ...user.options, ...forwardTo(edge, hostname, port)])
  await served(hostname, client.said)
  expect(client.said()).toContain('kex: algorithm: mlkem768x25519-sha256')
  expect(client.said().toLowerCase()).not.toMatch(/post-quantum|warning|store now/)
})

test('autossh reconnects after its ssh is killed', async () => {
  const hostname = await newTunnel()
  const env = { AUTOSSH_POLL: '1', AUTOSSH_GATETIME: '0', AUTOSSH_FIRST_POLL: '1' }
  const arguments_ = [...user.options, ...forwardTo(edge, hostname, port)]
  await using client = running(['autossh', '-M', '0', ...arguments_], env)
  await served(hostname, client.said)
  const below = await run('pgrep', ['--parent', String(client.child.pid)])
  process.kill(Number(below.stdout), 'SIGKILL')
  await vi.waitFor(async () => {
    const now = await run('pgrep', ['--parent', String(client.child.pid)])
    expect(now.stdout).not.toBe(below.stdout)
  }, SOON)
  await served(hostname, client.said)
})

describe('visitors are served', () => {
  let hostname: string
  let host: string
  const own = new AsyncDisposableStack()
  beforeAll(async () => {
    hostname = await newTunnel()
    host = `${hostname}.${edge.domain}`
    const client = own.use(running(['ssh', ...user.options, ...forwardTo(edge, hostname, port)]))
    await served(hostname, client.said)
  })
  afterAll(() => own.disposeAsync())
  const https = (path: string) => `https://${host}:${edge.ports.https}${path}`
  const curl = (...args: string[]) =>
    run('curl', [
      '--silent',
      '--insecure',
      '--resolve',
      `${host}:${edge.ports.https}:127.0.0.1`,
      '--write-out',
      ' %{http_version} %{http_code}',
      ...args,
    ])

  test.each([
    ['--http1.1', '1.1'],
    ['--http2', '2'],
  ])('with curl %s', async (flag, version) => {
    expect((await curl(flag, https('/a'))).stdout).toBe(`GET /a 0 ${version} 200`)
    expect((await curl(flag, '--data-binary', `@${upload()}`, https('/b'))).stdout).toBe(`POST /b ${8 * MIB} ${version} 200`)
    expect((await curl(flag, '--head', https('/c'))).stdout).toContain(`${version} 200`)
    expect((await curl(flag, '--output', '/dev/null', https('/large'))).stdout).toBe(` ${version} 200`)
  })

  test('with h2load: 2,000 requests over 20 connections without an error', async () => {
    const connect = ['--connect-to', `127.0.0.1:${edge.ports.https}`]
    const { stdout } = await run('h2load', ['-n', '2000', '-c', '20', '-m', '10', ...connect, https('/')])
    expect(stdout).toContain('2000 total, 2000 started, 2000 done, 2000 succeeded, 0 failed, 0 errored, 0 timeout')
    expect(stdout).toContain('Application protocol: h2')
  })

  test('with wrk: 32 connections without an error', async () => {
    const { stdout } = await run('wrk', [
      '-t',
      '1',
      '-c',
      '32',
      '-d',
      '2s',
      // By default, wrk counts a response that takes longer than two seconds as an error.
      '--timeout',
      `${SOON.timeout / 1_000}s`,
      '-H',
      `Host: ${host}`,
      `http://127.0.0.1:${edge.ports.http}/`,
    ])
    expect(stdout).toMatch(/\d+ requests in/)
    expect(stdout).not.toMatch(/Non-2xx|Socket errors/)
  })
})
