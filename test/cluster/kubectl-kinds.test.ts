import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { API_TOKEN_LIFE_MS, type ApiToken } from '../../crds/api-token.ts'
import { CUSTOM_KINDS } from '../../crds/index.ts'
import type { Draft } from '../../crds/kind.ts'
import type { Plan } from '../../crds/plan.ts'
import { PASSWORD_LIFE_MS, type TunnelPassword } from '../../crds/tunnel-password.ts'
import type { TunnelWebhook } from '../../crds/tunnel-webhook.ts'
import { clientsOf } from './setup/commands.ts'
import { EDGES } from './setup/release.ts'
import { adopted } from './setup/tenant.ts'
import { KUBECTL_WAIT } from '../support/patience.ts'

/** Output of kubectl for Mooring's kinds, and rejections of invalid objects. */

const { kubectl } = clientsOf(process.env.KUBECONFIG ?? '')
const ORGANIZATION = `kinds-${Date.now().toString(36)}`
const TENANT = `${ORGANIZATION}--prod`
const { region, motor } = inject('installation')
const apiVersion = 'mooring.dev/v1alpha1'
const apply = (object: object) => kubectl(['apply', '--filename', '-'], { apiVersion, ...object })

const price = { amount: '9.00', currency: 'EUR', unit: 'month' } as const
const plan: Draft<typeof Plan> = {
  metadata: { name: ORGANIZATION },
  spec: { name: 'Small', cpu: 1, memoryMiB: 1024, storageGiB: 10, engines: ['postgresql-15.4.0'], price },
}
const token: Draft<typeof ApiToken> = {
  metadata: { name: 'ci', namespace: TENANT },
  spec: { displayName: 'ci', role: 'viewer', expiresAt: '2030-01-31T12:00:00Z', sha256: '0'.repeat(64) },
}
const instance = (name: string, spec: object = {}) => ({
  kind: 'SharedInstance',
  metadata: { name, namespace: TENANT },
  spec: { identifier: name, region: region.id, motor, ...spec },
})

/** Has a name of its own: the Secret of a SharedInstance of the same name would be in its way. Its backups have a DatabaseArchive. */
const database = {
  kind: 'DedicatedDatabase',
  metadata: { name: 'own', namespace: TENANT },
  spec: { region: region.id, motor, plan: 'small', pointInTimeRecovery: { retentionDays: 1 } },
}

const tunnel = (name: string, spec: object = {}) => ({
  kind: 'Tunnel',
  metadata: { name, namespace: TENANT },
  spec: { regionId: 1, ...spec },
})
const tunnelPassword: Draft<typeof TunnelPassword> = {
  metadata: { name: 'once', namespace: TENANT },
  spec: { tunnelRef: { name: 'web' }, expiresAt: '2030-01-31T12:00:00Z', sha256: '1'.repeat(64) },
}
const tunnelWebhook: Draft<typeof TunnelWebhook> = {
  metadata: { name: 'shown', namespace: TENANT },
  spec: { tunnelRef: { name: 'web' }, url: 'https://example.com/hook', events: ['tunnel.connected'] },
}

beforeAll(async () => {
  const labels = { 'mooring.dev/organization': ORGANIZATION, 'mooring.dev/namespace': 'prod' }
  await apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: TENANT, labels } })
  await adopted(kubectl, TENANT)
  await apply(instance('shown'))
  await apply(database)
  await apply({ kind: 'Plan', ...plan })
  await apply({ kind: 'ApiToken', ...token })
  await apply(tunnel('web'))
  await apply({ kind: 'TunnelPassword', ...tunnelPassword })
  await apply({ kind: 'TunnelWebhook', ...tunnelWebhook })
  const made = [
    'tunnel/web',
    'tunnelpassword/once',
    'tunnelwebhook/shown',
    'tunnelendpoint/default',
    'sharedinstance/shown',
    'dedicateddatabase/own',
    'apitoken/ci',
    `plan/${ORGANIZATION}`,
    `organization/${ORGANIZATION}`,
  ]
  // The server of the dedicated database has a fifth of a core.
  await Promise.all(made.map((each) => kubectl(['wait', '--for=condition=Ready', each, '--namespace', TENANT, KUBECTL_WAIT])))
})

afterAll(async () => {
  await kubectl(['delete', 'plan', ORGANIZATION, '--ignore-not-found'])
  await kubectl(['delete', 'tenantnamespace', TENANT, '--ignore-not-found', '--wait=false'])
  await kubectl(['delete', 'organization', ORGANIZATION, '--ignore-not-found', '--wait=false'])
})

describe('kubectl', () => {
  test('lists usable resources with their addresses as `mooring`, and tenancy resources as `mooring-tenancy`', async () => {
    const lines = (await kubectl(['get', 'mooring,mooring-tenancy', '--all-namespaces', '--no-headers'])).split('\n')
    for (const { singular } of CUSTOM_KINDS)
      expect(lines.filter((line) => line.includes(` ${singular}.mooring.dev/`))).not.toEqual([])
    const where = 'jsonpath={.status.host} {.status.port} {.status.name}'
    const [host, port, name] = (await kubectl(['get', 'si', 'shown', '--namespace', TENANT, '--output', where])).split(' ')
    const mine = lines.find((line) => line.startsWith(TENANT) && line.includes('sharedinstance.mooring.dev/shown'))
    expect(mine?.split(/ +/).slice(2, 8)).toEqual(['shown', motor, 'True', 'Claimed', host, port])
    expect(mine).toContain(` ${name} `)
    const own = lines.find((line) => line.startsWith(TENANT) && line.includes('dedicateddatabase.mooring.dev/own'))
    expect(own?.split(/ +/).slice(2, 7)).toEqual([motor, 'small', 'running', 'True', 'Running'])
  })

  test('shows hostname and certificate status of a tunnel, and its URL with -o wide', async () => {
    const where = 'jsonpath={.status.hostname} {.status.url}'
    const [hostname = '', url] = (await kubectl(['get', 'tunnel', 'web', '--namespace', TENANT, '--output', where])).split(' ')
    expect(url).toBe(`https://${hostname}.${EDGES.domain}`)
    const line = await kubectl(['get', 'tunnel', 'web', '--namespace', TENANT, '--no-headers', '--output', 'wide'])
    expect(line).toMatch(new RegExp(`^web +${hostname} +1 +valid +(false +)?True +Assigned +${url}`))
  })

  test.each(CUSTOM_KINDS.flatMap((kind) => kind.shortNames.map((short) => ({ short, ...kind }))))(
    'shows the columns of a $kind as $short',
    async ({ short, namespaced, columns }) => {
      const [header = ''] = (await kubectl(['get', short, '--all-namespaces'])).split('\n')
      const shown = columns.filter(({ priority = 0 }) => priority === 0).map(({ name }) => name.toUpperCase())
      expect(header.trim().split(/ {2,}/)).toEqual([...(namespaced ? ['NAMESPACE'] : []), 'NAME', ...shown])
      expect(shown).toEqual(expect.arrayContaining(['READY', 'REASON', 'AGE']))
    },
  )

  test.each(CUSTOM_KINDS)('explains every field of a $kind', async ({ plural }) => {
    const text = await kubectl(['explain', `${plural}.spec`])
    const fields = text
      .slice(text.indexOf('FIELDS:'))
      .split(/^ {2}(?=\w+\t)/m)
      .slice(1)
    expect(fields).not.toEqual([])
    for (const field of fields) expect(field).toMatch(/^\w+\t<.*\n(?: {2}enum: .*\n)? {4}[A-Z]/)
  })
})

describe('limits of resources created by kubectl', () => {
  const shownOf = (object: string, path: string) =>
    kubectl(['get', object, '--namespace', TENANT, '--output', `jsonpath={${path}}`])
  const untilReady = (object: string, status = 'true') =>
    kubectl(['wait', `--for=condition=Ready=${status}`, object, '--namespace', TENANT, KUBECTL_WAIT])

  test.each([
    { object: 'tunnelpassword/once', lifeMs: PASSWORD_LIFE_MS },
    { object: 'apitoken/ci', lifeMs: API_TOKEN_LIFE_MS },
  ])(
    '$object expires at the maximum lifetime despite a later expiresAt, and its status has that time',
    async ({ object, lifeMs }) => {
      const made = await shownOf(object, '.metadata.creationTimestamp')
      const end = new Date(Date.parse(made) + lifeMs).toISOString()
      expect(await shownOf(object, '.status.expiresAt')).toBe(end)
      expect(await shownOf(object, '.status.conditions[0].message')).toContain(end)
      expect(await kubectl(['get', object, '--namespace', TENANT, '--no-headers'])).toContain(` ${end} `)
    },
  )

  test('a password is owned by its tunnel', async () => {
    const uid = await shownOf('tunnel/web', '.metadata.uid')
    expect(await shownOf('tunnelpassword/once', '.metadata.ownerReferences[*].uid')).toBe(uid)
  })

  test('the eleventh password of a tunnel waits until an older one is deleted', async () => {
    const names = Array.from('abcdefghij', (letter) => `more-${letter}`)
    const items = names.map((name) => ({
      ...{ apiVersion, kind: 'TunnelPassword', ...tunnelPassword, metadata: { ...tunnelPassword.metadata, name } },
    }))
    await apply({ apiVersion: 'v1', kind: 'List', items })
    await untilReady('tunnelpassword/more-j', 'false')
    expect(await shownOf('tunnelpassword/more-j', '.status.conditions[0].reason')).toBe('TooManyPasswords')
    await Promise.all(names.slice(0, -1).map((name) => untilReady(`tunnelpassword/${name}`)))
    await kubectl(['delete', 'tunnelpassword', 'more-a', '--namespace', TENANT])
    await untilReady('tunnelpassword/more-j')
  })
})

describe('an invalid object is rejected with the field and the rule', () => {
  test.each([
    {
      does: 'an identifier that starts with a hyphen',
      spec: { identifier: '-x' },
      says: /spec\.identifier: .*must be 1 to 63 letters/,
    },
    { does: 'a region that is not a UUID', spec: { region: 'here' }, says: /spec\.region: .*uuid/ },
    {
      does: 'an unknown motor',
      spec: { motor: 'oracle-23' },
      says: /spec\.motor: .*supported values: "mysql-5\.7\.38"/,
    },
    { does: 'no motor', spec: { motor: null }, says: /spec\.motor: Required value/ },
    { does: 'a field that does not exist', spec: { identifer: 'x' }, says: /unknown field "spec\.identifer"/ },
    {
      does: 'a date instead of a time',
      spec: { expiresAt: '2030-01-31' },
      says: /spec\.expiresAt: .*must be a UTC time such as 2030-01-31T12:00:00Z/,
    },
    { does: 'a template without a name', spec: { templateRef: {} }, says: /spec\.templateRef\.name: Required value/ },
    {
      does: 'a password version below 1',
      spec: { passwordVersion: 0 },
      says: /spec\.passwordVersion: .*greater than or equal to 1/,
    },
    { does: 'a string for a boolean', spec: { enabled: 'yes' }, says: /spec\.enabled: .*must be of type boolean/ },
  ])('$does', async ({ spec, says }) => {
    await expect(apply(instance('wrong', spec))).rejects.toThrow(says)
  })

  test.each([
    { does: 'the region', spec: { region: '00000000-0000-4000-8000-000000000000' }, says: /spec\.region: .*is immutable/ },
    { does: 'the motor', spec: { motor: 'postgresql-14.4.0' }, says: /spec\.motor: .*is immutable/ },
    { does: 'the template', spec: { templateRef: { name: 'other' } }, says: /spec\.templateRef: .*is immutable/ },
  ])('a change of $does', async ({ spec, says }) => {
    await expect(apply(instance('shown', spec))).rejects.toThrow(says)
  })

  test.each([
    {
      kind: 'Plan',
      object: { ...plan, spec: { ...plan.spec, price: { ...price, amount: 'free' } } },
      says: /spec\.price\.amount: /,
    },
    {
      kind: 'ApiToken',
      object: { ...token, spec: { ...token.spec, role: 'owner' } },
      says: /spec\.role: .*"viewer", "editor", "admin"/,
    },
    { kind: 'Organization', object: { metadata: { name: 'Acme_2' }, spec: {} }, says: /metadata\.name: .*lower[ -]case/i },
    {
      kind: 'TenantNamespace',
      object: { metadata: { name: 'a-b' }, spec: { organization: 'a', namespace: 'b' } },
      says: /metadata\.name: .*organization--namespace/,
    },
    {
      kind: 'Region',
      object: { metadata: { name: 'r' }, spec: { id: region.id, regionId: 0, name: 'r' } },
      says: /spec\.regionId: .*greater than or equal to 1/,
    },
    {
      kind: 'Tunnel',
      object: tunnel('wrong', { config: { ingressIPWhitelist: ['somewhere'] } }),
      says: /spec\.config\.ingressIPWhitelist/,
    },
    {
      kind: 'Tunnel',
      object: tunnel('wrong', { config: { ingressIpWhitelist: ['203.0.113.7'] } }),
      says: /unknown field "spec\.config\.ingressIpWhitelist"/,
    },
    {
      kind: 'TunnelEndpoint',
      object: { metadata: { name: 'a.b' }, spec: { region: region.id, domain: 't.example', sshHost: 't.example' } },
      says: /metadata\.name: .*at most 50 lower-case letters/,
    },
    {
      kind: 'TunnelEndpoint',
      object: { metadata: { name: 'default-mesh' }, spec: { region: region.id, domain: 't.example', sshHost: 't.example' } },
      says: /metadata\.name: .*must not end in -mesh/,
    },
    {
      kind: 'TunnelEndpoint',
      object: { metadata: { name: 'default' }, spec: { region: region.id, domain: 'other.example', sshHost: 't.example' } },
      says: /spec\.domain: .*is immutable/,
    },
  ])('a $kind', async ({ kind, object, says }) => {
    await expect(apply({ kind, ...object })).rejects.toThrow(says)
  })
})
