import { execFile } from 'node:child_process'
import { get } from 'node:http'
import { mkdtempDisposable, readdir, readFile, writeFile } from 'node:fs/promises'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { rootCertificates } from 'node:tls'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { codeOf, type Instance } from '../support/api/answers.ts'
import { createHttpsClient } from '../support/api/https-client.ts'
import { type Mooring, startMooring } from '../support/deployment/mooring.ts'
import { query } from '../support/postgresql/sql.ts'

// Mooring listens on every address of the machine, as for callers on other machines.

const run = promisify(execFile)
const psql = async (uri: string): Promise<string> => (await run('psql', ['-X', '-At', '-c', 'SELECT 1', uri])).stdout

let mooring: Mooring
let instance: Instance
beforeAll(async () => {
  mooring = await startMooring({ args: ['--listen', '0.0.0.0', '--compatible-motors'] })
  const body = { identifier: 'PR #7', region: mooring.ready.region, motor: 'postgresql-15.4.0' }
  instance = (await mooring.call('POST', '/v1/instances', { body })).body.data.instance
  return () => mooring[Symbol.asyncDispose]()
})

const outside = () =>
  Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .flatMap(({ internal, family, address }) => (!internal && family === 'IPv4' ? [address] : []))

test('an instance has an address that other machines reach, and requires TLS', () => {
  expect(outside()).toContain(instance.host)
  expect(instance.tls.required).toBe(true)
  expect(new URL(instance.uri).searchParams.get('sslmode')).toBe('verify-full')
})

test('a POST for a motor whose packaged server has no TLS 1.2 is 422 with the reason and what to do', async () => {
  const body = { identifier: 'old TLS', region: mooring.ready.region, motor: 'mysql-5.7.38' }
  const answer = await mooring.call('POST', '/v1/instances', { body })
  expect(codeOf(answer)).toBe('422 unsupported_motor')
  expect(answer.body.msg).toContain('its server 5.7.22 has no TLS 1.2, which clients require off loopback')
  expect(answer.body.msg).toContain('--engine mysql-5.7.38=docker')
})

test('psql connects with the unchanged uri and verifies the server by the CA that the uri names', async () => {
  expect(await psql(instance.uri)).toBe('1\n')
  await using directory = await mkdtempDisposable(join(tmpdir(), 'mooring-ca-'))
  const other = join(directory.path, 'other.pem')
  await writeFile(other, rootCertificates[0] ?? '')
  const url = new URL(instance.uri)
  url.searchParams.set('sslrootcert', other)
  await expect(psql(url.href)).rejects.toThrow(/certificate verify failed/)
})

test('the administrator of a database server may log in only from this machine', async () => {
  const [server = ''] = (await readdir(join(mooring.dataDir, 'servers'))).filter((name) => !name.startsWith('.'))
  const rules = await readFile(join(mooring.dataDir, 'servers', server, 'config/pg_hba.conf'), 'utf8')
  const ofAdmin = rules.split('\n').filter((line) => line.includes('"mooring"'))
  expect(ofAdmin.at(-1)).toBe('host all "mooring" all reject')
  expect(ofAdmin.slice(0, -1).map((line) => line.split(' ')[3])).toEqual(['127.0.0.0/8', '::1/128', 'samehost'])
})

test('the database accepts only TLS logins, which the returned CA verifies', async () => {
  expect(await query(instance, 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()')).toEqual([{ ssl: true }])
  await expect(query({ ...instance, tls: { required: false, ca: null } }, 'SELECT 1')).rejects.toMatchObject({ code: '28000' })
})

test('the API answers at each address with a certificate for that address', async () => {
  using client = createHttpsClient(await readFile(mooring.ready.ca, 'utf8'))
  const { port } = new URL(mooring.ready.sharedUrl)
  for (const address of outside()) {
    expect((await client.send(`https://${address}:${port}/healthz`, { method: 'GET', headers: {} })).status).toBe(200)
  }
})

test('the metrics are reachable only from this machine', async () => {
  const { port } = new URL(mooring.ready.metricsUrl)
  for (const address of outside()) await expect(fetch(`http://${address}:${port}/metrics`)).rejects.toThrow()
})

const statusFor = (url: string, host: string) =>
  new Promise<number | undefined>((resolve, reject) => {
    get(url, { headers: { host } }, (res) => resolve(res.resume().statusCode)).on('error', reject)
  })

test('plain HTTP and metrics accept a Host of loopback and reject others, such as those of DNS rebinding', async () => {
  const { sharedHttpUrl, dedicatedHttpUrl, metricsUrl } = mooring.ready
  const urls = [new URL('/healthz', sharedHttpUrl ?? ''), new URL('/healthz', dedicatedHttpUrl ?? ''), metricsUrl].map(String)
  for (const url of urls) {
    const { port } = new URL(url)
    for (const host of ['localhost', `127.0.0.1:${port}`, `[::1]:${port}`])
      expect([url, host, await statusFor(url, host)]).toEqual([url, host, 200])
    for (const host of ['evil.example', `evil.example:${port}`, `x.localhost:${port}`])
      expect([url, host, await statusFor(url, host)]).toEqual([url, host, 421])
  }
})
