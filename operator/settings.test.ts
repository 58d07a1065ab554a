import { hostname } from 'node:os'
import { expect, test } from 'vitest'
import { apiNames, type ClusterOperatorSettings, operatorSettings, parseSettings, podSettings } from './settings.ts'

function settingsOf(argv: readonly string[], env: Record<string, string> = {}): ClusterOperatorSettings {
  const parsed = parseSettings(argv, env)
  if (!('ok' in parsed)) throw new Error(parsed.text)
  return parsed.ok
}

test('the defaults are as documented', () => {
  expect(settingsOf([])).toEqual({
    listen: '0.0.0.0',
    metricsPort: 9464,
    identity: hostname(),
    issuerUrl: 'https://mooring-apiserver.mooring-system.svc',
    apiNames: [],
    clusterDomain: 'cluster.local',
    dial: 'name',
    podNetworks: [],
    pullSecrets: [],
    serverCpu: 100,
    serverCpuLimit: 2000,
    serverMemory: 256,
    serverMemoryLimit: 2048,
    serverStorage: 10,
    serverUser: 999,
    webhookPrivateAddresses: false,
    webhookAllowedNetworks: [],
    serverCapacity: 50,
    mongodbServerCapacity: 10,
    warmPool: 5,
    instanceSizeLimitMib: 1024,
    idleTransactionLimitSeconds: 600,
    statementLimitSeconds: 300,
    quotaInstances: 50,
    quotaDatabases: 5,
    quotaTunnels: 50,
    logLevel: 'info',
  })
})

test('an empty variable counts as unset, as the chart gives what its values leave empty', () => {
  expect(settingsOf([], { MOORING_STORAGE_CLASS: '', MOORING_ISSUER_URL: '', MOORING_POD_NETWORKS: '' })).toEqual(settingsOf([]))
})

test('lists are given with commas', () => {
  const env = { MOORING_API_NAMES: 'api.example,10.0.0.1', MOORING_POD_NETWORKS: '10.1.0.0/16, fd00::/48' }
  expect(settingsOf([], env)).toMatchObject({ apiNames: ['api.example', '10.0.0.1'], podNetworks: ['10.1.0.0/16', 'fd00::/48'] })
})

test.each([
  { argv: ['--api-names', 'not a host!'], says: '--api-names must be host names or IP addresses' },
  { argv: ['--pod-networks', '10.0.0.0/99'], says: '--pod-networks must be IP addresses or ranges' },
  {
    argv: ['--pod-networks', '10.1.0.0/16,10.2.3.4/16'],
    says: '--pod-networks must be ranges without address bits after the prefix, such as 10.2.0.0/16 for 10.2.3.4/16',
  },
  { argv: ['--issuer-url', 'http://x.example'], says: '--issuer-url must be an https URL' },
  { argv: ['--dial', 'carrier-pigeon'], says: '--dial must be one of name, address' },
  { argv: ['--edges', '{"image":7}'], says: '--edges must be a JSON object as the chart makes it of its value edges (image' },
  {
    argv: ['--server-memory', '512', '--server-memory-limit', '256'],
    says: '--server-memory-limit must be at least --server-memory',
  },
  { argv: ['--server-cpu-limit', '50'], says: '--server-cpu-limit must be at least --server-cpu, which is 100' },
])('$argv is rejected in one sentence', ({ argv, says }) => {
  const parsed = parseSettings(argv, {})
  expect(parsed).toMatchObject({ exit: 2, text: expect.stringMatching(/^mooring: [^\n]+\.$/) as string })
  expect('text' in parsed && parsed.text).toContain(says)
})

test('limits and sizes are converted to the units of their users', () => {
  const given = ['--statement-limit-seconds', '2', '--instance-size-limit-mib', '16', '--quota-tunnels', '7']
  expect(operatorSettings(settingsOf(given))).toMatchObject({
    limits: { statementMs: 2_000, idleTransactionMs: 600_000, sizeBytes: 16_777_216 },
    quotas: { instances: 50, databases: 5, tunnels: 7 },
  })
  expect(podSettings(settingsOf(['--server-cpu', '250'])).sharedSize).toMatchObject({ cpu: 0.25, cpuLimit: 2, memoryMiB: 256 })
})

test('the certificate is good for every name of the Service, for a port-forward, and for the names outside', () => {
  expect(apiNames({ apiNames: ['api.example', 'localhost'], clusterDomain: 'k8s.corp' })).toEqual([
    'mooring-apiserver',
    'mooring-apiserver.mooring-system',
    'mooring-apiserver.mooring-system.svc',
    'mooring-apiserver.mooring-system.svc.k8s.corp',
    'mooring-audit.mooring-system.svc',
    'localhost',
    '127.0.0.1',
    '::1',
    'api.example',
  ])
})
