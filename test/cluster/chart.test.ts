// Its tests build on each other:
// @module-tag whole-file
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { createCa, issueCertificate } from '../../operator/certificates/local-ca.ts'
import { createKubernetesStore } from '../../store/kubernetes.ts'
import { loadClusterConfig } from '../../store/kubernetes/credentials.ts'
import { freePort } from '../support/free-port.ts'
import { BUILD_MS } from '../support/backup/s3-server.ts'
import { createHttpsClient, type HttpsClient } from '../support/api/https-client.ts'
import { startLocalServer } from '../support/edge/visitor.ts'
import { writeSsh } from '../support/edge/openssh.ts'
import { visit } from './server-bench.ts'
import { type Bucket, placesWith, startBucket } from './setup/bucket.ts'
import { type CompanyPostgresql, startCompanyPostgresql, type IdentityProvider, startIdentityProvider } from './setup/company.ts'
import { type Kubernetes, run } from './setup/commands.ts'
import { queryFromPod } from './setup/database-client.ts'
import { EDGES } from './setup/release.ts'
import { SERVICE_MONITORS } from './setup/monitoring-kinds.ts'
import { type SecondCluster, startSecondCluster } from './setup/cluster.ts'
import { openTunnelBench, type TunnelBench } from './tunnels/bench.ts'
import { type Edges, edgesOf } from './tunnels/edges.ts'
import { KUBECTL_WAIT, LATER, patient } from '../support/patience.ts'

/** Installation of the chart by an administrator: its NOTES, and settings of a company. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const CHART = `${ROOT}charts/mooring`
/** The region of the chart's own values. */
const DEFAULT_REGION = '7b3f5a52-93c4-4f0e-9d0a-6c1d9a1f2e10'
const IN_SYSTEM = ['--namespace', 'mooring-system']
describe('the installed chart', () => {
  let cluster: SecondCluster
  let kubectl: Kubernetes['kubectl']
  let directory: string
  let postgresql: CompanyPostgresql
  let bucket: Bucket

  beforeAll(async () => {
    const { image } = inject('cluster')
    directory = await mkdtemp(join(tmpdir(), 'mooring-chart-'))
    cluster = await startSecondCluster(image, 3)
    kubectl = (args, input) => cluster.clients.kubectl(args, input)
    await kubectl(['apply', '--filename', '-'], SERVICE_MONITORS)
    postgresql = await startCompanyPostgresql(cluster.clients)
    await kubectl(['create', 'namespace', 'mooring-system'])
    await writeFile(join(directory, 'company-ca.pem'), postgresql.ca)
    const login = [`--from-literal=uri=${postgresql.uri}`, `--from-file=ca.crt=${directory}/company-ca.pem`]
    await kubectl(['create', 'secret', 'generic', 'company-postgresql', ...IN_SYSTEM, ...login])
    const [repository = '', tag = ''] = image.split(':')
    const install = ['install', 'mooring', CHART, ...IN_SYSTEM, '--create-namespace', '--wait', '--timeout', '4m', '-f', '-']
    bucket = await startBucket(cluster)
    await bucket.createSecret('mooring-system')
    await cluster.clients.helm('installing the chart', install, {
      image: { repository, tag, pullPolicy: 'IfNotPresent' },
      tunnels: { journal: { secretName: 'company-postgresql' } },
      edges: { domain: EDGES.domain },
      backups: bucket.values,
    })
    await bucket.createSecret('mooring-shared')
  }, BUILD_MS)
  afterAll(async () => {
    await bucket[Symbol.asyncDispose]()
    await cluster[Symbol.asyncDispose]()
    await rm(directory, { recursive: true })
  })

  test('the unchanged commands of the NOTES work', { timeout: patient(240_000) }, async () => {
    const notes = await run({ file: 'helm', args: ['get', 'notes', 'mooring', ...IN_SYSTEM], env: environment() })
    await using local = await startLocalServer()
    const key = join(directory, '.ssh', 'id_ed25519')
    await mkdir(join(directory, '.ssh'), { mode: 0o700 })
    await run({ file: 'ssh-keygen', args: ['-q', '-t', 'ed25519', '-N', '', '-C', 'user', '-f', key] })
    await writeSsh(directory, { options: [`IdentityFile=${key}`, 'StrictHostKeyChecking=yes'], localPort: local.port })
    const lines = notes.split('\n').filter((line) => line.startsWith('  '))
    const commands = await onFreePorts(lines.map((line) => line.slice(2)).join('\n'))
    // Background jobs end with the shell, as in an interactive one.
    const script = ["trap 'kill $(jobs -p)' EXIT", 'cd "$0"', commands].join('\n')
    const env = { ...environment(), HOME: directory, PATH: `${directory}:${process.env.PATH ?? ''}` }
    const output = await run({ file: 'bash', args: ['-c', script, directory], env })
    expect(output).toContain('"msg":"OK"')
    expect(output).toContain('sharedinstance.mooring.dev/second condition met')
    expect(output).toMatch(
      /postgresql:\/\/second[a-z2-7]+:[^@]+@[a-z0-9.-]+\.mooring-shared\.svc:5432\/second[a-z2-7]+\?sslmode=verify-full&sslrootcert=ca\.crt$/m,
    )
    expect(output).toContain('tunnel.mooring.dev/web condition met')
    // Answer of the local server to a visitor of the tunnel.
    expect(output).toMatch(/"host":"[0-9a-f]{16}\.tunnel\.test"/)
  })

  test('a pod of a tenant reaches a server with exposure ClusterIP by its host', async () => {
    const where = 'jsonpath={.status.host} {.status.port}'
    const [host = '', port] = (await kubectl(['get', 'si', 'second', '--namespace', 'acme--prod', '--output', where])).split(' ')
    await using store = createKubernetesStore({ config: await loadClusterConfig({ KUBECONFIG: cluster.clients.kubeconfig }) })
    const from = { namespace: 'acme--prod', image: inject('cluster').image }
    expect(await visit(store.client, from, [{ host, port: Number(port) }])).toEqual(['open'])
  })

  test('the ServiceMonitor selects both metrics Services', async () => {
    const selector = await kubectl([
      'get',
      'servicemonitor',
      'mooring',
      ...IN_SYSTEM,
      '--output',
      'jsonpath={.spec.selector.matchLabels}',
    ])
    const labels = Object.entries(JSON.parse(selector) as Record<string, string>).map((entry) => entry.join('='))
    const services = await kubectl(['get', 'services', ...IN_SYSTEM, '--selector', labels.join(','), '--output', 'name'])
    expect(services.split('\n')).toEqual(['service/mooring-edge-metrics', 'service/mooring-metrics'])
  })

  test(
    'a database is backed up to the bucket and restored from it, and the key of the bucket is in its Secrets alone',
    { timeout: patient(600_000) },
    async () => {
      const namespace = 'acme--prod'
      const create = async (name: string, more: object): Promise<void> => {
        const spec = { region: DEFAULT_REGION, motor: 'postgresql-15.4.0', plan: 'small', ...more }
        const metadata = { name, namespace }
        await kubectl(['create', '--filename', '-'], {
          apiVersion: 'mooring.dev/v1alpha1',
          kind: 'DedicatedDatabase',
          metadata,
          spec,
        })
        await kubectl(['wait', '--for=condition=Ready', `ddb/${name}`, '--namespace', namespace, KUBECTL_WAIT])
      }
      const read = (path: string) => kubectl(['get', 'ddb', 'orders', '--namespace', namespace, '--output', `jsonpath={${path}}`])
      const query = (database: string, text: string) =>
        queryFromPod(cluster.clients, { namespace, database, image: inject('cluster').image }, text)

      await create('orders', { pointInTimeRecovery: { retentionDays: 1 } })
      const { at } = await query('orders', 'CREATE TABLE kept AS SELECT 42 AS answer')
      const latest = () => read('.status.restoreWindow.latest')
      const covered = async () => Date.parse(await latest()) >= Date.parse(at)
      await expect.poll(covered, LATER).toBe(true)
      const time = await latest()
      await create('again', { restoreFrom: { databaseId: await read('.metadata.uid'), time } })
      expect((await query('again', 'SELECT answer FROM kept')).rows).toEqual([{ answer: 42 }])

      const found = await placesWith(cluster.clients, bucket.secrets)
      expect(found).toEqual(['Secret mooring-shared/backup-key', 'Secret mooring-system/backup-key'])
      expect(await bucket.objects()).not.toEqual([])
      const both = ['ddb', 'orders', 'again', '--namespace', namespace]
      await expect(kubectl(['delete', ...both])).rejects.toThrow('mooring.dev/allow-deletion=true')
      await kubectl(['annotate', ...both, 'mooring.dev/allow-deletion=true'])
      await kubectl(['delete', ...both, KUBECTL_WAIT])
      await expect.poll(() => bucket.objects(), LATER).toEqual([])
    },
  )

  describe('with a PostgreSQL of the company as its journal', () => {
    let bench: TunnelBench
    let edges: Edges

    beforeAll(async () => {
      await kubectl(['wait', '--for=condition=Ready', 'tunnelendpoint/default', KUBECTL_WAIT])
      const ca = await kubectl(['get', 'secret', 'mooring-apiserver', ...IN_SYSTEM, '--output', 'jsonpath={.data.ca\\.crt}'])
      const { kubeconfig } = cluster.clients
      bench = await openTunnelBench({ kubeconfig, ca: Buffer.from(ca, 'base64').toString() })
      edges = edgesOf(cluster.clients)
      await edges.settled()
    })
    afterAll(() => bench[Symbol.asyncDispose]())

    test('the journal has the records of edges and API servers, whose roles have at most SELECT on its tables', async () => {
      const [edge] = (await edges.ready()).values()
      const hostname = await bench.tunnel('web')
      bench.connect(hostname, edge)
      await vi.waitFor(async () => expect((await bench.visit(hostname, edge, '/visited')).status).toBe(200), LATER)
      const uid = await kubectl(['get', 'tunnel', 'web', '--namespace', bench.namespace, '--output', 'jsonpath={.metadata.uid}'])
      const recorded = `SELECT (SELECT count(*) > 0 FROM journal.requests WHERE path = '/visited') AS requests,
        (SELECT count(*)::int FROM journal.connections WHERE tunnel = '${uid}') AS connections,
        (SELECT array_agg(via || ' ' || action) FROM journal.audit WHERE resource = '${uid}') AS audit`
      const all = [{ requests: true, connections: 1, audit: ['kubectl create'] }]
      await expect.poll(() => postgresql.query(recorded), LATER).toEqual(all)
      const rights = await postgresql.query(`
        SELECT split_part(grantee, '_', 3) AS who, privilege_type AS may FROM information_schema.table_privileges
        WHERE grantee LIKE 'mooring\\_journal\\_%' GROUP BY 1, 2`)
      expect(rights).toEqual([{ who: 'reader', may: 'SELECT' }])
      const roles = await postgresql.query(`
        SELECT bool_or(rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls) AS more, count(*)::int AS roles
        FROM pg_roles WHERE rolname LIKE 'mooring\\_journal\\_%'`)
      expect(roles).toEqual([{ more: false, roles: 2 }])
    })

    test('the operator rejects a journal of another installation until the mark of that installation is removed', async () => {
      const of = async () => (await postgresql.query('SELECT id FROM journal.installation'))[0]?.id
      const mine = await kubectl(['get', 'namespace', 'mooring-system', '--output', 'jsonpath={.metadata.uid}'])
      expect(await of()).toBe(mine)
      await postgresql.query(`UPDATE journal.installation SET id = 'another'`)
      await kubectl(['delete', 'pods', ...IN_SYSTEM, '--selector', 'app.kubernetes.io/component=operator', '--grace-period=1'])
      // Only now: the former operator would have written it again.
      await kubectl(['delete', 'secret', 'journal-edge', ...IN_SYSTEM])
      const log = ['logs', ...IN_SYSTEM, '--selector', 'app.kubernetes.io/component=operator', '--tail=-1']
      await expect.poll(() => kubectl(log), LATER).toContain('journal_taken')
      const logins = () => kubectl(['get', 'secret', 'journal-edge', ...IN_SYSTEM, '--ignore-not-found', '--output', 'name'])
      expect([await of(), await logins()]).toEqual(['another', ''])

      await postgresql.query('DROP TABLE journal.installation')
      await expect.poll(of, LATER).toBe(mine)
      await expect.poll(logins, LATER).toBe('secret/journal-edge')
    })
  })

  describe('with a certificate and an identity provider of the company', () => {
    let provider: IdentityProvider
    let client: HttpsClient
    let url: string

    beforeAll(async () => {
      provider = await startIdentityProvider(cluster.hostAddress)
      const ca = await createCa(new Date())
      const node = await cluster.clients.nodeAddress()
      const { certificate, key } = await issueCertificate({ ca, names: [node], now: new Date() })
      const metadata = { name: 'company-tls', namespace: 'mooring-system' }
      const stringData = { 'tls.crt': certificate, 'tls.key': key }
      await kubectl(['apply', '--filename', '-'], {
        apiVersion: 'v1',
        kind: 'Secret',
        type: 'kubernetes.io/tls',
        metadata,
        stringData,
      })
      await cluster.clients.helm(
        'helm upgrade',
        ['upgrade', 'mooring', CHART, ...IN_SYSTEM, '--reuse-values', '--wait', '--timeout', '4m', '-f', '-'],
        {
          apiserver: { tls: { secretName: 'company-tls' }, service: { type: 'NodePort' } },
          oidc: { issuers: [{ name: 'corp', url: provider.url }], ca: provider.ca },
        },
      )
      const nodePort = 'jsonpath={.spec.ports[?(@.name=="shared")].nodePort}'
      url = `https://${node}:${await kubectl(['get', 'service', 'mooring-apiserver', ...IN_SYSTEM, '--output', nodePort])}`
      client = createHttpsClient(ca.certificate)
    })
    afterAll(async () => {
      client[Symbol.dispose]()
      await provider[Symbol.asyncDispose]()
    })

    async function get(path: string, token: string) {
      const headers = { Authorization: `Bearer ${token}`, 'Mooring-Namespace': 'acme/prod' }
      const { status, text } = await client.send(url + path, { method: 'GET', headers })
      return { status, body: JSON.parse(text) as unknown }
    }

    test('the API presents the certificate of the Secret', async () => {
      expect(await client.send(`${url}/readyz`, { method: 'GET', headers: {} })).toMatchObject({ status: 200 })
      using untrusting = createHttpsClient(provider.ca)
      await expect(untrusting.send(`${url}/readyz`, { method: 'GET', headers: {} })).rejects.toThrow(/certificate/)
    })

    test('a user of the provider signs in and gets a role by kubectl', async () => {
      const alice = await provider.token({ subject: 'alice', audience: 'mooring', groups: ['devs'] })
      expect(await get('/v1/me', alice)).toMatchObject({
        status: 200,
        body: { data: { user: 'corp:alice', groups: ['corp:devs'], namespaces: [] } },
      })
      // A namespace in which the user has no role is not found.
      expect(await get('/v1/instances', alice)).toMatchObject({ status: 404 })
      await kubectl(['apply', '--filename', `${ROOT}docs/samples/member.yaml`])
      await expect.poll(() => get('/v1/instances', alice)).toMatchObject({ status: 200, body: { data: { instances: [{}, {}] } } })
      const binding = ['create', 'rolebinding', 'devs', '--clusterrole', 'mooring-viewer', '--group', 'corp:devs']
      await kubectl([...binding, '--namespace', 'acme--prod'])
      const bob = await provider.token({ subject: 'bob', audience: 'mooring', groups: ['devs'] })
      await expect
        .poll(() => get('/v1/me', bob))
        .toMatchObject({ body: { data: { namespaces: [{ organization: 'acme', namespace: 'prod', role: 'viewer' }] } } })
    })

    test('the API rejects a token for another audience or of another issuer', async () => {
      const elsewhere = await provider.token({ subject: 'alice', audience: 'other' })
      expect(await get('/v1/me', elsewhere)).toMatchObject({ status: 401 })
      await using impostor = await startIdentityProvider(cluster.hostAddress)
      const forged = await impostor.token({ subject: 'alice', audience: 'mooring' })
      expect(await get('/v1/me', forged)).toMatchObject({ status: 401 })
    })
  })

  const environment = () => ({ KUBECONFIG: cluster.clients.kubeconfig })
})

/** Replaces the local ports of port-forward commands by free ones. The ports of the Services stay. */
async function onFreePorts(commands: string): Promise<string> {
  let text = commands
  for (const port of [8443, 22222, 28443])
    text = text.replace(new RegExp(`(?<!${port}:)\\b${port}\\b`, 'g'), String(await freePort()))
  return text
}
