import { execFile } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { serverNames } from '../../embedded/listeners.ts'
import { createCa, issueCertificate, type KeyPair, renewalTime, stillGood } from './local-ca.ts'
import { createCertificates } from './renewing-certificate.ts'

const run = promisify(execFile)
const NAMES = ['localhost', '127.0.0.1', '::1', 'host.example']
const DAY = 86_400_000
const now = new Date()
const inDays = (days: number): Date => new Date(now.getTime() + days * DAY)

let ca: KeyPair
let server: KeyPair
beforeAll(async () => {
  ca = await createCa(now)
  server = await issueCertificate({ ca, names: NAMES, now })
})

test('the authority may sign certificates, lasts ten years, and is named after its installation', async () => {
  const certificate = new X509Certificate(ca.certificate)
  expect(certificate.ca).toBe(true)
  expect(certificate.subject).toMatch(/^CN=Mooring local CA [0-9a-f]{8}$/)
  expect(certificate.validToDate.getTime()).toBeGreaterThan(inDays(3_650).getTime())
  expect(certificate.verify(certificate.publicKey)).toBe(true)
  expect((await createCa(now)).certificate).not.toBe(ca.certificate)
})

test('a server certificate is valid for exactly its names, and for at most 90 days', () => {
  const certificate = new X509Certificate(server.certificate)
  expect(certificate.ca).toBe(false)
  expect(certificate.checkIssued(new X509Certificate(ca.certificate))).toBe(true)
  expect(certificate.checkHost('host.example')).toBe('host.example')
  expect(certificate.checkHost('other.example')).toBeUndefined()
  expect(certificate.checkIP('127.0.0.1')).toBe('127.0.0.1')
  expect(certificate.checkIP('127.0.0.2')).toBeUndefined()
  expect(certificate.validToDate.getTime()).toBeLessThanOrEqual(inDays(90).getTime())
})

test('a certificate has an RSA key on request, and a stored one of the other algorithm is replaced', async () => {
  const rsa = await issueCertificate({ ca, names: NAMES, now, key: 'rsa' })
  const { publicKey } = new X509Certificate(rsa.certificate)
  expect([publicKey.asymmetricKeyType, publicKey.asymmetricKeyDetails?.modulusLength]).toEqual(['rsa', 2048])
  expect(stillGood(rsa, { ca, names: NAMES, now, key: 'rsa' })).toBe(true)
  expect(stillGood(rsa, { ca, names: NAMES, now })).toBe(false)
  expect(stillGood(server, { ca, names: NAMES, now, key: 'rsa' })).toBe(false)
})

test('a server certificate expires no later than its CA', async () => {
  const late = await issueCertificate({ ca, names: NAMES, now: inDays(3_640) })
  expect(new X509Certificate(late.certificate).validTo).toBe(new X509Certificate(ca.certificate).validTo)
})

test('openssl finds the chain strictly valid, for a host name and for an address', async () => {
  await using dir = await mkdtempDisposable(join(tmpdir(), 'ca-'))
  const [caFile, file] = [join(dir.path, 'ca.pem'), join(dir.path, 'server.pem')]
  await writeFile(caFile, ca.certificate)
  await writeFile(file, server.certificate)
  for (const name of [
    ['-verify_hostname', 'localhost'],
    ['-verify_ip', '::1'],
  ]) {
    const verify = ['verify', '-x509_strict', '-purpose', 'sslserver', '-CAfile', caFile, ...name, file]
    expect((await run('openssl', verify)).stdout).toBe(`${file}: OK\n`)
  }
})

test('curl and a TLS client trust a server by the authority alone, and by no other authority', async () => {
  await using dir = await mkdtempDisposable(join(tmpdir(), 'ca-'))
  const [caFile, otherFile] = [join(dir.path, 'ca.pem'), join(dir.path, 'other.pem')]
  const other = await createCa(now)
  await writeFile(caFile, ca.certificate)
  await writeFile(otherFile, other.certificate)
  await using https = createServer({ cert: server.certificate, key: server.key }, (_req, res) => res.end('hello')).listen(
    0,
    '127.0.0.1',
  )
  await once(https, 'listening')
  const { port } = https.address() as AddressInfo

  const url = `https://localhost:${port}/`
  expect((await run('curl', ['-sS', '--noproxy', '*', '--cacert', caFile, url])).stdout).toBe('hello')
  await expect(run('curl', ['-sS', '--noproxy', '*', '--cacert', otherFile, url])).rejects.toMatchObject({ code: 60 })

  const socket = connect({ host: '127.0.0.1', port, ca: ca.certificate })
  await once(socket, 'secureConnect')
  expect(socket.authorized).toBe(true)
  socket.destroy()
  const stranger = connect({ host: '127.0.0.1', port, ca: other.certificate })
  await expect(once(stranger, 'secureConnect')).rejects.toMatchObject({
    code: expect.stringContaining('UNABLE_TO_VERIFY') as string,
  })
  https.closeAllConnections()
})

test.each([
  { does: 'is good for the names it has', given: () => ({ names: ['localhost', '::1'] }), good: true },
  { does: 'is not good for a further name', given: () => ({ names: [...NAMES, 'new.example'] }), good: false },
  { does: 'is good until two thirds of its life', given: () => ({ now: inDays(59) }), good: true },
  { does: 'is not good after two thirds of its life', given: () => ({ now: inDays(61) }), good: false },
  { does: 'is not good before its validity begins', given: () => ({ now: inDays(-2) }), good: false },
  { does: 'is not good under another authority', given: async () => ({ ca: await createCa(now) }), good: false },
])('a stored certificate $does', async ({ given, good }) => {
  expect(stillGood(server, { ca, names: NAMES, now, ...(await given()) })).toBe(good)
})

test('a stored certificate with a wildcard is good for that wildcard', async () => {
  const wildcard = await issueCertificate({ ca, names: ['*.t.example'], now })
  expect(stillGood(wildcard, { ca, names: ['*.t.example'], now })).toBe(true)
  expect(stillGood(wildcard, { ca, names: ['*.other.example'], now })).toBe(false)
})

test('a stored certificate stays in use until its renewal is due', async () => {
  let clock = now
  using certificates = await createCertificates({ ca, names: NAMES, stored: server, now: () => clock })
  const renewed: KeyPair[] = []
  certificates.onRenew((pair) => renewed.push(pair))
  await certificates.check()
  expect(certificates.current()).toBe(server)
  expect(renewed).toEqual([])

  clock = new Date(renewalTime(server.certificate).getTime() + 1)
  await certificates.check()
  expect(renewed).toEqual([certificates.current()])
  expect(certificates.current().certificate).not.toBe(server.certificate)
  expect(stillGood(certificates.current(), { ca, names: NAMES, now: clock })).toBe(true)
})

test.each(['my.example.org', '192.0.2.9', '2001:db8::1'])(
  'the certificate of a server with the public host %s has that name',
  (publicHost) => {
    expect(serverNames('0.0.0.0', publicHost)).toEqual(expect.arrayContaining(['localhost', publicHost]))
  },
)

test.each([
  { listen: '127.0.0.1', has: ['localhost', '127.0.0.1', '::1'] },
  { listen: '192.0.2.7', has: ['localhost', '192.0.2.7'] },
  { listen: '0.0.0.0', has: ['localhost', '127.0.0.1'] },
])('the certificate of a server that listens on $listen has the name $has', ({ listen, has }) => {
  const names = serverNames(listen)
  expect(names).toEqual(expect.arrayContaining(has))
  expect(new Set(names).size).toBe(names.length)
  expect(names).not.toContain('0.0.0.0')
})
