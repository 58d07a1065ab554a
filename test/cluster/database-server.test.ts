import { X509Certificate } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest'
import { Secret } from '../../crds/core.ts'
import type { DatabaseServer } from '../../crds/database-server.ts'
import type { Kind } from '../../crds/kind.ts'
import { createCa, issueCertificate } from '../../operator/certificates/local-ca.ts'
import { tlsTo } from '../../operator/engines/postgresql/connection.ts'
import { adminCredentials } from '../../operator/server/credentials.ts'
import { ConfigMap, NetworkPolicy, PersistentVolumeClaim, Pod, Service, StatefulSet } from '../../operator/kubernetes/kinds.ts'
import { selectorOf } from '../../operator/server/kubernetes/manifests.ts'
import { keyOf } from '../../store/port.ts'
import { objectPath } from '../../store/kubernetes/resource.ts'
import { openServerBench, type ServerBench, visit } from './server-bench.ts'
import { LATER } from '../support/patience.ts'
import { loop } from '../support/postgresql/stuck.ts'

const DAY = 86_400_000

let bench: ServerBench
/** Server shared by all tests that do not change it permanently. */
let server: DatabaseServer
beforeAll(async () => {
  bench = await openServerBench()
  // The certificate of the server will be due for renewal as soon as the clock is correct.
  bench.ahead.ms = -61 * DAY
  server = await bench.addServer({})
  await bench.running(server)
})
afterAll(() => bench[Symbol.asyncDispose]())

const key = (name = server.metadata.name) => ({ namespace: bench.namespace, name })
const podKey = () => key(`${server.metadata.name}-0`)

async function versionOf(client: pg.Client): Promise<string> {
  return (await client.query<{ server_version: string }>('SHOW server_version')).rows[0]?.server_version ?? ''
}

/** Returns the certificate that the server presents. Connects with a PostgreSQL client, because PostgreSQL starts TLS only on request. */
async function shownCertificate(): Promise<X509Certificate> {
  let shown: X509Certificate | undefined
  const checkServerIdentity = (_host: string, { raw }: { raw: Buffer }) => {
    shown = new X509Certificate(raw)
    return undefined
  }
  const client = await bench.connect(server, {
    ssl: { ...tlsTo({ ca: bench.ca.certificate, client: await bench.adminCertificate() }), checkServerIdentity },
  })
  await client.end()
  if (!shown) throw new Error('no certificate was shown')
  return shown
}

test('clients outside of the cluster log in over TLS and verify the server with the CA', async () => {
  const client = await bench.connect(server)
  expect(await versionOf(client)).toBe('15.4')
  const { host } = await bench.running(server)
  expect(host).toMatch(/^\d+(\.\d+){3}$/)
  const otherCa = { ssl: { ca: (await createCa(new Date())).certificate } }
  await expect(bench.connect(server, otherCa)).rejects.toMatchObject({
    code: expect.stringMatching(/VERIFY|SELF_SIGNED/) as string,
  })
})

test('the server rejects logins without TLS or with a wrong password', async () => {
  await expect(bench.connect(server, { ssl: false })).rejects.toMatchObject({ code: '28000' })
  await expect(bench.connect(server, { password: 'guess' })).rejects.toMatchObject({ code: '28P01' })
})

test('the administrator cannot log in with the password but without the certificate of the operator', async () => {
  const { certificate } = bench.ca
  await expect(bench.connect(server, { ssl: { ca: certificate } })).rejects.toMatchObject({ code: '28000' })
  const forger = await createCa(new Date())
  const forged = await issueCertificate({ ca: forger, names: ['mooring'], now: new Date(), usage: 'client', subject: 'mooring' })
  const asForger = { ca: certificate, cert: forged.certificate, key: forged.key }
  await expect(bench.connect(server, { ssl: asForger })).rejects.toThrow()
  // A certificate of the same CA for another purpose.
  const peer = await issueCertificate({ ca: bench.ca, names: ['mooring'], now: new Date(), usage: 'peer' })
  const asPeer = { ca: certificate, cert: peer.certificate, key: peer.key }
  await expect(bench.connect(server, { ssl: asPeer })).rejects.toMatchObject({ code: '28P01' })
})

test('a server of PostgreSQL 14 runs', async () => {
  const other = await bench.addServer({ motor: 'postgresql-14.4.0' })
  expect(await versionOf(await bench.connect(other))).toMatch(/^14\./)
})

test('only the Secret contains the password, and the pod has no token and a read-only file system', async () => {
  const { password } = await adminCredentials(bench.store, server)
  for (const kind of [StatefulSet, Pod, ConfigMap, Service, NetworkPolicy]) {
    const { items } = await bench.store.list(kind, { namespace: bench.namespace })
    expect(JSON.stringify(items)).not.toContain(password)
  }
  const client = await bench.connect(server)
  const reads = (path: string) => client.query('SELECT pg_read_file($1)', [path])
  await expect(reads('/var/run/secrets/kubernetes.io/serviceaccount/token')).rejects.toMatchObject({ code: '58P01' })
  await expect(reads('/etc/mooring/admin/password')).rejects.toMatchObject({ code: '58P01' })
  await expect(client.query("COPY (SELECT 1) TO '/etc/mooring-was-here'")).rejects.toThrow(/Read-only file system/)
  const { rows } = await client.query<{ status: string }>("SELECT pg_read_file('/proc/1/status') AS status")
  expect(rows[0]?.status).toMatch(/^Uid:\s+999\s+999/m)
  expect(rows[0]?.status).toMatch(/^CapEff:\s+0+$/m)
  expect(rows[0]?.status).toMatch(/^NoNewPrivs:\s+1$/m)
})

test('the server cannot open connections to other hosts', async () => {
  const client = await bench.connect(server)
  await client.query('CREATE EXTENSION IF NOT EXISTS dblink')
  const attempt = async (host: string, port: number) => {
    const where = `host=${host} port=${port} connect_timeout=2 sslmode=require user=nobody`
    const failed: unknown = await client.query('SELECT dblink_connect($1)', [where]).catch((error: unknown) => error)
    return failed instanceof pg.DatabaseError ? failed.detail : undefined
  }
  const service = await bench.store.get(Service, key())
  const api = await bench.store.get(Service, { namespace: 'default', name: 'kubernetes' })
  expect(await attempt('127.0.0.1', 5432)).toMatch(/no password supplied/)
  for (const [host, port] of [
    [api?.spec.clusterIP ?? '', 443],
    [service?.spec.clusterIP ?? '', 5432],
  ] as const) {
    expect(await attempt(host, port)).toMatch(/timeout expired|Connection refused/)
  }
})

test('only pods of tenants on the server can connect to it, by each of its addresses', async () => {
  const [own, other] = [await bench.addNamespace(), await bench.addNamespace()]
  const { host, port } = await bench.running(server)
  const pod = await bench.store.get(Pod, podKey())
  const service = await bench.store.get(Service, key())
  const ways = [
    { host: pod?.status?.podIP ?? '', port: 5432 },
    { host: service?.spec.clusterIP ?? '', port: 5432 },
    { host, port },
  ]
  const { image } = inject('cluster')
  const refused = expect.stringMatching(/^(timeout|ECONNREFUSED)$/) as string
  expect(await visit(bench.store.client, { namespace: own, image }, ways)).toEqual(ways.map(() => refused))

  bench.tenants.add(own)
  await bench.runtime.tenantsChanged(server.metadata.name)
  expect(await visit(bench.store.client, { namespace: own, image }, ways)).toEqual(ways.map(() => 'open'))
  expect(await visit(bench.store.client, { namespace: other, image }, ways)).toEqual(ways.map(() => refused))
  bench.tenants.clear()
})

test.each([StatefulSet, Service, NetworkPolicy, ConfigMap, Secret])('ensure restores a deleted $kind', async (kind: Kind) => {
  const found = await bench.store.list(kind, { namespace: bench.namespace, labels: selectorOf(server.metadata.name) })
  const [first] = found.items
  if (!first) throw new Error(`there is no ${kind.kind}`)
  await bench.store.delete(kind, keyOf(first))
  await expect
    .poll(async () => {
      await bench.ensure(server)
      return (await bench.store.get(kind, keyOf(first)))?.metadata.uid
    })
    .toSatisfy((uid) => uid !== undefined && uid !== first.metadata.uid)
  await bench.running(server)
})

test('data survives the deletion of the pod', async () => {
  const client = await bench.connect(server)
  await client.query('CREATE TABLE kept AS SELECT 42 AS answer')
  const pod = await bench.store.get(Pod, podKey())
  await bench.store.delete(Pod, podKey())
  await expect.poll(async () => (await bench.store.get(Pod, podKey()))?.metadata.uid, LATER).not.toBe(pod?.metadata.uid)
  const again = await bench.connect(server)
  expect((await again.query('SELECT answer FROM kept')).rows).toEqual([{ answer: 42 }])
})

test('the server presents a renewed certificate without a restart', async () => {
  const before = await shownCertificate()
  const pod = await bench.store.get(Pod, podKey())
  bench.ahead.ms = 0
  await expect
    .poll(async () => {
      await bench.ensure(server)
      return (await shownCertificate()).serialNumber
    }, LATER)
    .not.toBe(before.serialNumber)
  expect((await bench.store.get(Pod, podKey()))?.metadata.uid).toBe(pod?.metadata.uid)
})

test('ensure writes nothing for an unchanged server', async () => {
  await bench.running(server)
  const before = await Promise.all([StatefulSet, Service, NetworkPolicy].map((kind: Kind) => bench.store.get(kind, key())))
  const request = vi.spyOn(bench.store.client, 'request')
  for (let round = 0; round < 3; round += 1) await bench.ensure(server)
  const writes = request.mock.calls.map(([{ method, path }]) => `${method} ${path}`).filter((line) => !line.startsWith('GET '))
  request.mockRestore()
  expect(writes).toEqual([])
  expect(await Promise.all([StatefulSet, Service, NetworkPolicy].map((kind: Kind) => bench.store.get(kind, key())))).toEqual(
    before,
  )
})

test('a server behind a load balancer waits for its address before it has a pod and a certificate for the address', async () => {
  const behind = await bench.addServer({ region: { databases: { exposure: 'LoadBalancer' } } })
  const waiting = await bench.ensure(behind)
  expect(waiting).toEqual({ phase: 'starting', message: 'its load balancer has no address yet' })
  const where = { ...key(behind.metadata.name) }
  expect(await bench.store.get(StatefulSet, where)).toBeUndefined()
  const { status } = await bench.store.client.request({
    method: 'PATCH',
    path: `${objectPath(Service, where)}/status`,
    contentType: 'application/merge-patch+json',
    body: { status: { loadBalancer: { ingress: [{ ip: '192.0.2.10' }] } } },
  })
  expect(status).toBe(200)
  expect(await bench.running(behind)).toMatchObject({ host: '192.0.2.10', port: 5432 })
  const secret = await bench.store.get(Secret, key(`${behind.metadata.name}-tls`))
  const certificate = new X509Certificate(Buffer.from(secret?.data['tls.crt'] ?? '', 'base64'))
  expect(certificate.checkIP('192.0.2.10')).toBe('192.0.2.10')
})

test('a missing image makes the motor unavailable, and a correct image repairs the server', async () => {
  const image = 'localhost/not-there:1'
  const motors = [{ id: 'postgresql-15.4.0' as const, warm: true, image }]
  const region = { motors }
  const broken = await bench.addServer({ region })
  const failed = await bench.until(broken, ({ phase }) => phase === 'failed')
  expect(failed).toMatchObject({ reason: 'MotorUnavailable', message: expect.stringContaining(image) as string })
  motors[0] = { id: 'postgresql-15.4.0', warm: true, image: 'postgres:15.4' }
  await bench.until(broken, ({ phase }) => phase === 'running')
})

test('an image that cannot run the engine is reported as a crash with its last output', async () => {
  const motors = [{ id: 'postgresql-15.4.0' as const, warm: true, image: inject('cluster').image }]
  const broken = await bench.addServer({ region: { motors } })
  const failed = await bench.until(broken, ({ phase }) => phase === 'failed')
  expect(failed).toMatchObject({ reason: 'Crashed', message: expect.stringMatching(/^initialise /) as string })
})

test('a removed server leaves no objects behind', async () => {
  const doomed = await bench.addServer({})
  await bench.running(doomed)
  await expect.poll(() => bench.runtime.remove(doomed), LATER).toBe(true)
  for (const kind of [StatefulSet, Service, Pod, PersistentVolumeClaim, ConfigMap, Secret, NetworkPolicy]) {
    const { items } = await bench.store.list<Kind>(kind, {
      namespace: bench.namespace,
      labels: selectorOf(doomed.metadata.name),
    })
    expect(items).toEqual([])
  }
})

test('restart replaces the pod of a server with a statement that nothing ends, which keeps its data', async () => {
  const client = await bench.connect(server)
  await client.query('CREATE TABLE restarted AS SELECT 1 AS n')
  await loop(await bench.connect(server))
  const before = await bench.store.get(Pod, podKey())
  await bench.runtime.restart(server)
  await vi.waitFor(async () => {
    const pod = await bench.store.get(Pod, podKey())
    expect(pod?.metadata.uid).toBeDefined()
    expect(pod?.metadata.uid).not.toBe(before?.metadata.uid)
  }, LATER)
  await expect(client.query('SELECT 1')).rejects.toThrow()
  const again = await bench.connect(server)
  expect((await again.query('SELECT n FROM restarted')).rows).toEqual([{ n: 1 }])
  await again.query('DROP TABLE restarted')
})
