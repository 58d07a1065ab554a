import { describe, expect, test } from 'vitest'
import { FAMILIES, type Family, type Motor } from '../../../../crds/motor.ts'
import { desired, pod, server, service } from '../../../../test/support/operator/kubernetes-objects.ts'
import { exporterPassword, EXPORTER_SOURCE } from '../../../engines/exporter.ts'
import { parseSettings } from '../../../settings.ts'
import { decodeSecret } from '../../../secret-data.ts'
import { certificateNames } from '../addresses.ts'
import { placementOf, POD_SETTINGS, type DesiredServer } from '../desired-server.ts'
import { ENGINE_PODS } from '../engine-pods.ts'
import { configMapOf, insidersOf, serviceOf } from '../manifests.ts'
import { networkPolicyOf } from '../network-policy.ts'
import { statefulSetOf } from '../stateful-set.ts'
import { exporterSecretOf } from './containers.ts'
import { ExporterPods, exporterOf, type ExporterPodSettings } from './settings.ts'

const GIVEN = {
  images: { postgresql: 'exporter:pg', mysql: 'exporter:my', mariadb: 'exporter:maria', mongodb: 'exporter:mongo' },
  prometheus: { namespace: 'monitoring', podLabels: { 'app.kubernetes.io/name': 'prometheus' } },
  podMonitor: { enabled: true },
  resources: { requests: { cpu: '10m' }, limits: { memory: '64Mi' } },
}
const SETTINGS: ExporterPodSettings = ExporterPods.parse(JSON.stringify(GIVEN))
const MOTOR: Readonly<Record<Family, Motor>> = {
  ...{ postgresql: 'postgresql-15.4.0', mysql: 'mysql-8.0.29', mariadb: 'mariadb-10.7.4', mongodb: 'mongodb-7.0.2' },
}
const MONITORING = { namespace: 'acme--prod', database: 'orders' }
const PASSWORD = exporterPassword('admin')

function monitored(family: Family, traits: Partial<DesiredServer> = {}): DesiredServer {
  const spec = { ...server.spec, tenancy: 'dedicated' as const, motor: MOTOR[family], monitoring: MONITORING }
  const about = { ...server, spec }
  return desired({ server: about, engine: ENGINE_PODS[family], exporter: exporterOf(about, SETTINGS), ...traits })
}

function templateOf(about: DesiredServer) {
  const template = statefulSetOf(about, { configHash: 'abc', live: undefined }).spec?.template
  const containers = [...(template?.spec?.initContainers ?? []), ...(template?.spec?.containers ?? [])]
  const exporter = containers.find(({ name }) => name === 'exporter')
  return { template, containers, exporter }
}

function secretOf(about: DesiredServer) {
  const { data = {} } = about.exporter ? exporterSecretOf(about.exporter, about, { password: PASSWORD, ca: 'PEM' }) : {}
  return Object.fromEntries(Object.keys(data).map((key) => [key, decodeSecret(data, key)]))
}

describe.each(FAMILIES)('the exporter of %s', (family) => {
  test('is a confined container beside the server, with its image and a port', () => {
    const { exporter, containers, template } = templateOf(monitored(family))
    expect(containers.map(({ name }) => name)).toEqual(['initialise', family, 'exporter'])
    expect(exporter).toMatchObject({
      image: GIVEN.images[family],
      ports: [{ name: 'metrics' }],
      securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
      resources: { requests: { cpu: '10m' }, limits: { memory: '64Mi' } },
    })
    expect(template?.metadata?.annotations).toMatchObject({
      ...{ 'mooring.dev/database-namespace': 'acme--prod', 'mooring.dev/database': 'orders' },
    })
  })

  test('has its password from a Secret, which only its container mounts', () => {
    const { template, containers } = templateOf(monitored(family))
    const having = containers.filter(({ volumeMounts = [] }) => volumeMounts.some(({ name }) => name === 'exporter'))
    expect(having.map(({ name }) => name)).toEqual(['exporter'])
    expect(JSON.stringify(template)).not.toContain(PASSWORD)
    const referring = containers.filter(({ env = [] }) =>
      env.some(({ valueFrom }) => valueFrom?.secretKeyRef?.name === 'pg-1-exporter'),
    )
    expect(referring.every(({ name }) => name === 'exporter')).toBe(true)
    expect(Object.values(secretOf(monitored(family))).join('\n')).toContain(PASSWORD)
  })

  test('is reached by Prometheus alone, which reaches nothing else', () => {
    const port = { postgresql: 9187, mysql: 9104, mariadb: 9104, mongodb: 9216 }[family]
    const { ingress } = networkPolicyOf(monitored(family), { namespaces: [], podNetworks: [] }).spec
    expect(ingress[1]).toEqual({
      from: [
        {
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } },
          podSelector: { matchLabels: { 'app.kubernetes.io/name': 'prometheus' } },
        },
      ],
      ports: [{ protocol: 'TCP', port }],
    })
    expect(JSON.stringify(ingress[0])).not.toContain('prometheus')
    expect(templateOf(monitored(family)).exporter?.ports?.[0]?.containerPort).toBe(port)
  })
})

test('PostgreSQL admits the exporter over loopback to the maintenance database alone', () => {
  const hbaOf = (about: DesiredServer) => configMapOf(about, []).data?.['pg_hba.conf'] ?? ''
  const exporters = (text: string) => text.split('\n').filter((line) => line.includes('mooring_exporter'))
  expect(exporters(hbaOf(monitored('postgresql')))).toEqual(['host postgres mooring_exporter 127.0.0.1/32 scram-sha-256'])
  expect(exporters(hbaOf(desired()))).toEqual([])
})

test('MongoDB collects the diagnostic data that its exporter reads', () => {
  const confOf = (about: DesiredServer) => configMapOf(about, []).data?.['mongod.conf'] ?? ''
  expect(confOf(monitored('mongodb'))).toContain('diagnosticDataCollectionEnabled: true')
  expect(confOf(desired({ engine: ENGINE_PODS.mongodb }))).toContain('diagnosticDataCollectionEnabled: false')
})

test.each([
  { family: 'mysql', tls: true, entry: 'my.cnf', has: 'ssl-ca=/etc/mooring/exporter/ca.crt' },
  { family: 'mongodb', tls: true, entry: 'uri', has: 'tls=true&tlsCAFile=%2Fetc%2Fmooring%2Fexporter%2Fca.crt' },
] as const)('the exporter of $family uses TLS where the server requires it', ({ family, tls, entry, has }) => {
  expect(secretOf(monitored(family, { tls }))[entry]).toContain(has)
  expect(secretOf(monitored(family, { tls: false }))[entry]).not.toContain(has)
})

test('the engine admits the exporter whatever the firewall rules', () => {
  expect(insidersOf(monitored('mysql'), ['10.244.0.0/16'])).toEqual(['10.244.0.0/16', '127.0.0.1/32'])
  expect(insidersOf(desired(), ['10.244.0.0/16'])).toEqual(['10.244.0.0/16'])
})

test('clients reach a server whose exporter has failed', () => {
  expect(serviceOf(monitored('postgresql')).spec?.publishNotReadyAddresses).toBe(true)
})

test('only a server with monitoring and with an image for its family has an exporter', () => {
  const existing = { statefulSet: undefined, service: undefined }
  const placed = (about: DesiredServer['server'], exporters: ExporterPodSettings | undefined) =>
    placementOf(about, { settings: { ...POD_SETTINGS, exporters }, region: () => undefined, plan: () => undefined }, existing)
  const { server: about } = monitored('postgresql')
  expect(placed(about, SETTINGS)).toMatchObject({ exporter: { image: 'exporter:pg' } })
  expect(placed(about, undefined)).toMatchObject({ exporter: undefined })
  expect(placed(about, { ...SETTINGS, images: { postgresql: '' } })).toMatchObject({ exporter: undefined })
  expect(placed({ ...about, spec: { ...about.spec, monitoring: undefined } }, SETTINGS)).toMatchObject({ exporter: undefined })
})

test('the password of an exporter is derived from that of the administrator, and differs from it', () => {
  expect(exporterPassword('admin')).toBe(PASSWORD)
  expect(exporterPassword('other')).not.toBe(PASSWORD)
  expect(PASSWORD).toMatch(/^[\w-]{43}$/)
})

test.each([
  { does: 'an unknown family', settings: { ...GIVEN, images: { oracle: 'x' } } },
  { does: 'no namespace of Prometheus', settings: { ...GIVEN, prometheus: {} } },
  { does: 'an unknown field', settings: { ...GIVEN, color: 'blue' } },
])('the setting with $does is rejected', ({ settings }) => {
  const result = parseSettings([], { MOORING_MONITORING: JSON.stringify(settings) })
  expect(result).toMatchObject({ exit: 2, text: expect.stringContaining('--monitoring') as string })
})

test('the certificate of a server names the address by which its exporter connects', () => {
  const surroundings = { service: service(), pod: pod(), nodes: [] }
  expect(certificateNames(monitored('mysql'), surroundings)).toContain(EXPORTER_SOURCE)
})
