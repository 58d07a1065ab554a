import { expect, test } from 'vitest'
import { desired, server } from '../../../../test/support/operator/kubernetes-objects.ts'
import { parseSettings } from '../../../settings.ts'
import { postgresqlPod } from '../postgresql.ts'
import { type DesiredServer, placementOf, POD_SETTINGS } from '../desired-server.ts'
import { configHash, configMapOf, serviceOf } from '../manifests.ts'
import { networkPolicyOf } from '../network-policy.ts'
import { statefulSetOf } from '../stateful-set.ts'
import { BackupPods, type BackupPodSettings } from './settings.ts'

const UID = '5b0c6f0e-2f7e-4b51-8a0f-3d2a9f6c7e01'
const OTHER = '9a4e1f6c-6a55-4c6e-9a6b-4f6f1d1c0a99'
const parsed = (settings: object): BackupPodSettings => BackupPods.parse(JSON.stringify({ image: 'mooring:1', ...settings }))
const S3 = parsed({
  ...{ url: 's3://backups/mooring', secretName: 's3', env: { AWS_REGION: 'eu-1' } },
  egress: [{ cidr: '203.0.113.7/32', port: 443 }],
})
const VOLUME = parsed({ claim: 'backups', resources: { limits: { memory: '256Mi', cpu: 1 } } })

type Spec = Partial<DesiredServer['server']['spec']>
const ARCHIVE: Spec = { archive: { prefix: UID } }
const RESTORE: Spec = { restore: { prefix: OTHER, time: '2026-01-02T03:04:05Z' } }
const backedUp = (backups: BackupPodSettings, spec: Spec = ARCHIVE): DesiredServer =>
  desired({ server: { ...server, spec: { ...server.spec, tenancy: 'dedicated', ...spec } }, backups })

function podOf(about: DesiredServer) {
  const pod = statefulSetOf(about, { configHash: 'abc', live: undefined }).spec?.template.spec
  const all = [...(pod?.initContainers ?? []), ...(pod?.containers ?? [])]
  const container = (name: string) => all.find((each) => each.name === name) ?? expect.fail(`there is no container ${name}`)
  return { pod, names: all.map(({ name }) => name), container }
}

const mountsOf = (container: { readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[] }) =>
  new Map((container.volumeMounts ?? []).map((mount) => [mount.name, mount]))

test('a server with backups has the agent beside it, and one that is restored has the restore before it', () => {
  expect(podOf(backedUp(S3)).names).toEqual(['initialise', 'postgresql', 'backup'])
  expect(podOf(backedUp(S3, RESTORE)).names).toEqual(['restore', 'initialise', 'postgresql'])
  expect(podOf(backedUp(S3, { ...ARCHIVE, ...RESTORE })).names).toEqual(['restore', 'initialise', 'postgresql', 'backup'])
  expect(podOf(desired()).names).toEqual(['initialise', 'postgresql'])
})

test.each(['backup', 'restore'])('the container %s is confined as that of the server', (name) => {
  const { pod, container } = podOf(backedUp(S3, { ...ARCHIVE, ...RESTORE }))
  expect(pod?.automountServiceAccountToken).toBe(false)
  expect(container(name)).toMatchObject({
    image: 'mooring:1',
    securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
    envFrom: [{ secretRef: { name: 's3' } }],
  })
})

test('the credentials of the repository are in no container of the engine', () => {
  const { container } = podOf(backedUp(S3, { ...ARCHIVE, ...RESTORE }))
  for (const name of ['initialise', 'postgresql']) {
    expect(container(name).envFrom).toBeUndefined()
    expect(container(name).env).toBeUndefined()
  }
})

test('the agent logs in by a socket that only the server and it share', () => {
  const { pod, container } = podOf(backedUp(VOLUME))
  const having = [...(pod?.initContainers ?? []), ...(pod?.containers ?? [])].filter((each) => mountsOf(each).has('socket'))
  expect(having.map(({ name }) => name)).toEqual(['postgresql', 'backup'])
  const env = Object.fromEntries((container('backup').env ?? []).map(({ name, value }) => [name, value]))
  expect(env).toMatchObject({
    ...{ MOORING_REPOSITORY: '/var/lib/mooring/backups', MOORING_PREFIX: UID, MOORING_SOCKET: '/run/mooring' },
    ...{ MOORING_DATA: '/var/lib/postgresql/data/pgdata', MOORING_ENGINE_VERSION: '15.4.0' },
    MOORING_SPOOL: '/var/lib/postgresql/data/pgdata/mooring_spool',
  })
  const { data = {} } = configMapOf(backedUp(VOLUME), [])
  expect(data['postgresql.conf']).toContain("unix_socket_directories = '/run/mooring'\n")
  expect(data['postgresql.conf']).toContain("archive_mode = 'on'\n")
  expect(data['pg_hba.conf']?.split('\n').filter((line) => line.startsWith('local'))).toEqual([
    'local all "mooring" scram-sha-256',
  ])
})

test('a server without backups has no socket and no archiving', () => {
  const { data = {} } = configMapOf(desired(), [])
  expect(data['postgresql.conf']).toContain("unix_socket_directories = ''\n")
  expect(data['pg_hba.conf']).not.toMatch(/^local/m)
})

test('a change of the add-on restarts the server', () => {
  const hashOf = (about: DesiredServer) => configHash(about, configMapOf(about, []))
  expect(hashOf(backedUp(S3))).not.toBe(hashOf(backedUp(S3, {})))
})

test('an agent sees only the backups of its own database, and a restore reads those of one', () => {
  const { pod, container } = podOf(backedUp(VOLUME, { ...ARCHIVE, ...RESTORE }))
  expect(pod?.volumes).toContainEqual({ name: 'backups', persistentVolumeClaim: { claimName: 'backups' } })
  const mount = { name: 'backups', mountPath: `/var/lib/mooring/backups/${UID}`, subPath: UID }
  expect(mountsOf(container('backup')).get('backups')).toEqual(mount)
  const source = { name: 'backups', mountPath: `/var/lib/mooring/backups/${OTHER}`, subPath: OTHER, readOnly: true }
  expect(mountsOf(container('restore')).get('backups')).toEqual(source)
  expect(mountsOf(container('postgresql')).has('backups')).toBe(false)
  expect(container('backup').resources).toEqual({ limits: { memory: '256Mi', cpu: '1' } })
})

test('a server with backups in a bucket may connect to the bucket and to the DNS, and to nothing else', () => {
  const egressOf = (about: DesiredServer) => networkPolicyOf(about, { namespaces: [], podNetworks: [] }).spec.egress
  const dns = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'kube-system' } } }
  expect(egressOf(backedUp(S3))).toEqual([
    { to: [{ ipBlock: { cidr: '203.0.113.7/32' } }], ports: [{ protocol: 'TCP', port: 443 }] },
    {
      to: [dns],
      ports: [
        { protocol: 'UDP', port: 53 },
        { protocol: 'TCP', port: 53 },
      ],
    },
  ])
  expect(egressOf(backedUp({ ...S3, dns: false }))).toHaveLength(1)
  expect(egressOf(backedUp(VOLUME))).toEqual([])
  expect(egressOf(desired())).toEqual([])
})

test('clients reach a server whose agent has failed', () => {
  expect(serviceOf(backedUp(S3)).spec?.publishNotReadyAddresses).toBe(true)
  expect(serviceOf(desired()).spec?.publishNotReadyAddresses).toBeUndefined()
})

test('a server whose backups this installation cannot make is not started', () => {
  const about = (spec: Spec) => ({ ...server, spec: { ...server.spec, ...spec } })
  const facts = (backups: BackupPodSettings | undefined) => ({
    settings: { ...POD_SETTINGS, backups },
    region: () => undefined,
    plan: () => undefined,
  })
  const existing = { statefulSet: undefined, service: undefined }
  expect(placementOf(about(ARCHIVE), facts(undefined), existing)).toMatchObject({ phase: 'failed' })
  expect(placementOf(about({ ...RESTORE, motor: 'mariadb-10.7.4' }), facts(S3), existing)).toMatchObject({ phase: 'failed' })
  expect(placementOf(about(ARCHIVE), facts(S3), existing)).toMatchObject({ backups: S3, engine: postgresqlPod })
  expect(placementOf(about({}), facts(S3), existing)).not.toHaveProperty('backups')
})

test.each([
  { does: 'neither bucket nor volume', settings: { image: 'mooring:1' } },
  { does: 'bucket and volume', settings: { image: 'mooring:1', url: 's3://backups', claim: 'backups' } },
  { does: 'an unknown field', settings: { image: 'mooring:1', claim: 'backups', color: 'blue' } },
  { does: 'no image', settings: { claim: 'backups' } },
])('the setting with $does is rejected', ({ settings }) => {
  const result = parseSettings([], { MOORING_BACKUPS: JSON.stringify(settings) })
  expect(result).toMatchObject({ exit: 2, text: expect.stringContaining('--backups') as string })
})
