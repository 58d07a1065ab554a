import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { z } from 'zod'
import type { Motor } from '../../crds/motor.ts'
import { SHARED_NAMESPACE } from '../../crds/names.ts'
import { serverNameOf } from '../../operator/dedicated-database/resources.ts'
import { createKubernetesStore } from '../../store/kubernetes.ts'
import { loadClusterConfig } from '../../store/kubernetes/credentials.ts'
import { asInstance, createDatabase, databasePath, dedicated, untilGone, untilRunning } from '../support/api/databases.ts'
import { expectSuccess, type Tenant } from '../support/api/tenant.ts'
import { openDeployment } from '../support/deployment/deployment.ts'
import { openSession } from '../support/families/family-session.ts'
import { visit } from './server-bench.ts'
import { clientsOf } from './setup/commands.ts'
import { POD_MONITORS } from './setup/monitoring-kinds.ts'
import { openMonitoringNamespace, PodMonitor, startPrometheus } from './setup/prometheus.ts'

/** Exporters beside dedicated databases. A real Prometheus scrapes them as the operator's PodMonitor says. */

const cluster = clientsOf(process.env.KUBECONFIG ?? '')
const { kubectl } = cluster
const deployment = openDeployment()
const cleanup = new AsyncDisposableStack()
const IN_SHARED = ['--namespace', SHARED_NAMESPACE]
const PATIENCE = { timeout: 180_000, interval: 1_000 }
const TIMEOUT = 900_000
/** Range of documentation (RFC 5737), from which no client connects. */
const ELSEWHERE = '203.0.113.0/24'
let acme: Tenant
let podMonitor: PodMonitor

beforeAll(async () => {
  acme = await deployment.namespace()
  // The operator runs already: it finds a kind that is installed later.
  const definition = ['customresourcedefinition', POD_MONITORS.metadata.name]
  if ((await kubectl(['get', ...definition, '--ignore-not-found', '--output', 'name'])) === '') {
    await kubectl(['create', '--filename', '-'], POD_MONITORS)
    cleanup.defer(async () => {
      await kubectl(['delete', ...definition])
    })
  }
  const read = () => kubectl(['get', 'podmonitor', 'mooring-databases', ...IN_SHARED, '--output', 'json'])
  const found = await vi.waitFor(read, PATIENCE)
  podMonitor = PodMonitor.parse(JSON.parse(found))
  cleanup.use(await openMonitoringNamespace(cluster))
})
afterAll(async () => {
  await cleanup.disposeAsync()
  await deployment[Symbol.asyncDispose]()
})

const MOTORS = ['postgresql-15.4.0', 'mariadb-10.7.4', 'mysql-8.0.29', 'mysql-5.7.38'] as const

/** Prefix of the metrics of an exporter, by family. */
const PREFIX = { postgresql: 'pg_', mysql: 'mysql_', mariadb: 'mysql_' } as const
const PORTS = { postgresql: 9187, mysql: 9104, mariadb: 9104 } as const

const familyOf = (motor: (typeof MOTORS)[number]): keyof typeof PORTS => motor.slice(0, motor.indexOf('-')) as keyof typeof PORTS

const Pod = z.object({
  spec: z.object({ containers: z.array(z.object({ name: z.string() })) }),
  status: z.object({ podIP: z.string(), containerStatuses: z.array(z.object({ name: z.string(), ready: z.boolean() })) }),
})
const podOf = async (server: string) =>
  Pod.parse(JSON.parse(await kubectl(['get', 'pod', `${server}-0`, ...IN_SHARED, '-o', 'json'])))

const Dashboard = z.object({
  panels: z.array(z.object({ title: z.string(), targets: z.array(z.object({ expr: z.string() })) })),
})

/** Returns the expressions of the Grafana dashboard over metrics with this prefix, for one database. */
async function expressionsOf(prefix: string, database: string): Promise<readonly string[]> {
  const file = new URL('../../charts/mooring/dashboards/databases.json', import.meta.url)
  const { panels } = Dashboard.parse(JSON.parse(await readFile(file, 'utf8')))
  const all = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))
  const values = { $namespace: '.*', $database: database, $__rate_interval: '1m' }
  return all
    .filter((expression) => expression.includes(prefix))
    .map((expression) => Object.entries(values).reduce((text, [name, value]) => text.replaceAll(name, value), expression))
}

/** Returns the password of the exporter of a server, from its Secret. */
async function passwordOf(server: string): Promise<string> {
  const { data } = Secret.parse(JSON.parse(await kubectl(['get', 'secret', `${server}-exporter`, ...IN_SHARED, '-o', 'json'])))
  const text = Object.values(data).map((value) => Buffer.from(value, 'base64').toString())
  // An entry is the password alone, an option file or a URI.
  return /(?<=password=|mooring_exporter:|^)[\w-]{43}(?=$|@)/m.exec(text.join('\n'))?.[0] ?? ''
}
const Secret = z.object({ data: z.record(z.string(), z.string()) })

/** Runs a database with monitoring, until disposal. */
async function monitoredDatabase(motor: Motor, firewall: object = {}) {
  const editor = dedicated(acme.as('editor'))
  const name = motor.replaceAll('.', '-')
  const made = await createDatabase(editor, {
    ...{ organization: acme.organization, namespace: acme.namespace, name, engine: motor, plan: 'small' },
    ...{ region: deployment.installation.region.id, monitoring: true, ...firewall },
  })
  await using removal = new AsyncDisposableStack()
  removal.defer(async () => {
    await expectSuccess(editor('DELETE', databasePath(made)))
    await untilGone(editor, made)
  })
  await untilRunning(editor, made)
  const ownership = removal.move()
  return { made, editor, [Symbol.asyncDispose]: () => ownership.disposeAsync() }
}

describe.each(MOTORS)('the exporter of a dedicated database of %s', (motor) => {
  const family = familyOf(motor)

  test('is scraped by Prometheus alone, whatever the firewall rules, until monitoring is off', { timeout: TIMEOUT }, async () => {
    const name = motor.replaceAll('.', '-')
    await using database = await monitoredDatabase(motor, { firewallRules: [{ cidr: ELSEWHERE }] })
    const { made, editor } = database

    await using prometheus = await startPrometheus(cluster, podMonitor)
    const labels = { mooring_namespace: `${acme.organization}--${acme.namespace}`, mooring_database: name }
    const up = `${PREFIX[family]}up{mooring_database="${name}"}`
    await expect.poll(() => prometheus.query(up), PATIENCE).toMatchObject([{ value: 1, labels }])
    const expressions = await expressionsOf(PREFIX[family], name)
    expect(expressions.length).toBeGreaterThan(3)
    for (const expression of expressions) {
      await expect.poll(() => prometheus.query(expression), { ...PATIENCE, message: expression }).toMatchObject([{ labels }])
    }

    const server = serverNameOf(made.id)
    const { status } = await podOf(server)
    const exporter = { host: status.podIP, port: PORTS[family] }
    await using store = createKubernetesStore({ config: await loadClusterConfig(process.env) })
    const from = { namespace: labels.mooring_namespace, image: inject('cluster').image }
    expect(await visit(store.client, from, [exporter])).toEqual([expect.stringMatching(/^(timeout|ECONNREFUSED)$/)])

    const password = await passwordOf(server)
    expect(password).toHaveLength(43)
    expect(await kubectl(['logs', `${server}-0`, ...IN_SHARED, '--all-containers'])).not.toContain(password)
    for (const kind of ['pod,statefulset,configmap,event', 'databaseserver,dedicateddatabase']) {
      expect(await kubectl(['get', kind, '--all-namespaces', '--output', 'json'])).not.toContain(password)
    }

    await expectSuccess(editor('PATCH', databasePath(made), { body: { monitoring: null } }))
    await untilRunning(editor, made)
    expect((await podOf(server)).spec.containers.map((container) => container.name)).not.toContain('exporter')
    const secret = () => kubectl(['get', 'secret', `${server}-exporter`, ...IN_SHARED, '--ignore-not-found', '--output', 'name'])
    await expect.poll(secret, PATIENCE).toBe('')
  })
})

test('a database runs although the image of its exporter cannot be pulled', { timeout: TIMEOUT }, async () => {
  // There is no stand-in of this image.
  await using database = await monitoredDatabase('mongodb-7.0.2')
  const { made, editor } = database
  const server = serverNameOf(made.id)
  const waiting = (await podOf(server)).status.containerStatuses.filter(({ ready }) => !ready)
  expect(waiting.map(({ name }) => name)).toEqual(['exporter'])
  await using session = await openSession(asInstance(await untilRunning(editor, made)))
  await session.ping()

  await expectSuccess(editor('PATCH', databasePath(made), { body: { monitoring: null } }))
  await untilRunning(editor, made)
  expect((await podOf(server)).spec.containers.map(({ name }) => name)).not.toContain('exporter')
})
