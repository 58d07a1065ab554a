// Its tests build on each other:
// @module-tag whole-file
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { z } from 'zod'
import type { Kubernetes } from './setup/commands.ts'
import { type SecondCluster, startSecondCluster } from './setup/cluster.ts'
import { KUBECTL_WAIT, LATER, patient } from '../support/patience.ts'

/** Life of a release from installation to removal, in a separate cluster. Each test continues from the state of the previous test. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const CHART = `${ROOT}charts/mooring`
const SAMPLES = `${ROOT}docs/samples`
const IN_SYSTEM = ['--namespace', 'mooring-system']
const WAIT = ['--wait', '--timeout', '4m']

let cluster: SecondCluster | undefined
let kubectl: Kubernetes['kubectl']
let helm: (args: readonly string[], values?: object) => Promise<string>

beforeAll(async () => {
  const { image } = inject('cluster')
  cluster = await startSecondCluster(image, 2, ['mariadb:10.7.4'])
  const { clients } = cluster
  kubectl = (args, input) => clients.kubectl(args, input)
  helm = (args, values = {}) => clients.helm(`helm ${args[0] ?? ''}`, args, values)
  const [repository = '', tag = ''] = image.split(':')
  const install = ['install', 'mooring', CHART, ...IN_SYSTEM, '--create-namespace', ...WAIT, '-f', '-']
  const edges = { domain: 'tunnels.example', image: { repository, tag } }
  await helm(install, { image: { repository, tag, pullPolicy: 'IfNotPresent' }, edges })
})

afterAll(async () => {
  await cluster?.[Symbol.asyncDispose]()
})

const ready = (what: string, ...namespace: string[]) =>
  kubectl(['wait', '--for=condition=Ready', what, KUBECTL_WAIT, ...namespace])

/** The tunnel of docs/install.md. */
const INSTALL_TUNNEL = {
  apiVersion: 'mooring.dev/v1alpha1',
  kind: 'Tunnel',
  metadata: { name: 'web', namespace: 'acme--prod' },
  spec: {
    regionId: 1,
    config: { authorizedKeys: ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTEx'] },
  },
}

test('every sample of the documents is accepted after the steps of docs/install.md, and becomes ready', async () => {
  await kubectl(['create', 'namespace', 'acme--prod'])
  await kubectl(['label', 'namespace', 'acme--prod', 'mooring.dev/organization=acme', 'mooring.dev/namespace=prod'])
  await kubectl(['apply', '--filename', `${SAMPLES}/shared-instance.yaml`])
  await ready('sharedinstance/pr-1234', '--namespace', 'acme--prod')
  await kubectl(['apply', '--filename', '-'], INSTALL_TUNNEL)
  await ready('tunnel/web', '--namespace', 'acme--prod')

  await kubectl(['apply', '--filename', SAMPLES])
  await ready('tenantnamespace/acme--prod')
  await ready('sharedinstance/pr-1235', '--namespace', 'acme--prod')
  await ready('sharedinstance/shop', '--namespace', 'acme--prod')
  await ready('dedicateddatabase/orders', '--namespace', 'acme--prod')
  await ready('region/fra')
  await ready('tunnelendpoint/default')
  await ready('tunnelendpoint/fra')
  await ready('tunnel/preview', '--namespace', 'acme--prod')
  await ready('tunnelpassword/ci', '--namespace', 'acme--prod')
  await ready('tunnelwebhook/deploys', '--namespace', 'acme--prod')
})

test('the role of a member decides what the member may do by kubectl', async () => {
  const alice = ['--as', 'corp:alice', '--namespace', 'acme--prod']
  expect(await kubectl(['auth', 'can-i', 'create', 'sharedinstances.mooring.dev', ...alice])).toBe('yes')
  await expect(kubectl(['auth', 'can-i', 'create', 'apitokens.mooring.dev', ...alice])).rejects.toThrow('no')
})

const Definition = z.looseObject({
  spec: z.looseObject({
    versions: z.tuple([
      z.looseObject({
        additionalPrinterColumns: z.array(z.looseObject({ name: z.string() })),
        schema: z.object({
          openAPIV3Schema: z.looseObject({
            properties: z.looseObject({ spec: z.looseObject({ 'x-kubernetes-validations': z.array(z.unknown()).default([]) }) }),
          }),
        }),
      }),
    ]),
  }),
})
const CRD = 'customresourcedefinition/sharedinstances.mooring.dev'

/** Changes the definition to that of an older release, with a rule that no longer exists and without a column. */
async function ageDefinition(): Promise<void> {
  const definition = Definition.parse(JSON.parse(await kubectl(['get', CRD, '--output', 'json'])))
  const [version] = definition.spec.versions
  version.additionalPrinterColumns = version.additionalPrinterColumns.filter(({ name }) => name !== 'Database')
  const { spec } = version.schema.openAPIV3Schema.properties
  spec['x-kubernetes-validations'].push({ rule: "self.identifier != 'no-more'", message: 'an old rule' })
  await kubectl(['replace', '--filename', '-'], definition)
}

const sample = (identifier: string) => ({
  apiVersion: 'mooring.dev/v1alpha1',
  kind: 'SharedInstance',
  metadata: { name: identifier, namespace: 'acme--prod' },
  spec: { identifier, region: '7b3f5a52-93c4-4f0e-9d0a-6c1d9a1f2e10', motor: 'postgresql-15.4.0' },
})

test(
  'an upgrade updates an older definition and restarts neither databases nor edges',
  { timeout: patient(360_000) },
  async () => {
    await ageDefinition()
    await expect(kubectl(['apply', '--filename', '-'], sample('no-more'))).rejects.toThrow('an old rule')
    const uids = 'jsonpath={.items[*].metadata.uid} {.items[*].status.containerStatuses[*].restartCount}'
    const pods = async () => [
      await kubectl(['get', 'pods', '--namespace', 'mooring-shared', '--output', uids]),
      await kubectl(['get', 'pods', ...IN_SYSTEM, '--selector', 'app.kubernetes.io/name=mooring-edge', '--output', uids]),
    ]
    const before = await pods()

    await helm(['upgrade', 'mooring', CHART, ...IN_SYSTEM, '--reuse-values', '--set', 'logLevel=debug', ...WAIT])
    const column = '--for=jsonpath={.spec.versions[0].additionalPrinterColumns[?(@.name=="Database")].type}=string'
    await kubectl(['wait', CRD, column, KUBECTL_WAIT])
    await kubectl(['apply', '--filename', '-'], sample('no-more'))
    await ready('sharedinstance/no-more', '--namespace', 'acme--prod')
    expect(await pods()).toEqual(before)
  },
)

test(
  'values without a domain keep the endpoint, and a domain that comes back finds the host keys',
  { timeout: patient(360_000) },
  async () => {
    const endpoint = (path: string) => kubectl(['get', 'tunnelendpoint', 'default', '--output', `jsonpath={${path}}`])
    const before = [await endpoint('.metadata.uid'), await endpoint('.status.hostKeys')]
    const upgrade = (args: readonly string[], values = {}) => helm(['upgrade', 'mooring', CHART, ...IN_SYSTEM, ...args], values)
    const [repository = '', tag = ''] = inject('cluster').image.split(':')
    await upgrade(['--reset-values', ...WAIT, '-f', '-'], { image: { repository, tag, pullPolicy: 'IfNotPresent' } })
    expect([await endpoint('.metadata.uid'), await endpoint('.status.hostKeys')]).toEqual(before)
    const other = upgrade(['--reuse-values', '--set', 'edges.domain=other.example'])
    await expect(other).rejects.toThrow('edges.domain may not change from tunnels.example to other.example')

    const withDomain = ['--reuse-values', '--set', 'edges.domain=tunnels.example', ...WAIT]
    await upgrade(withDomain)
    // The SSH tunnel of a database is there.
    await kubectl(['annotate', 'tunnelendpoint', 'default', 'mooring.dev/allow-deletion=true'])
    await kubectl(['delete', 'tunnelendpoint', 'default', KUBECTL_WAIT])
    await upgrade(withDomain)
    await ready('tunnelendpoint/default')
    expect(await endpoint('.metadata.uid')).not.toBe(before[0])
    expect(await endpoint('.status.hostKeys')).toBe(before[1])
  },
)

test.each(['tunnelendpoint', 'region'])('a %s in use is deleted only with its annotation', async (kind) => {
  await expect(kubectl(['delete', kind, 'fra'])).rejects.toThrow('mooring.dev/allow-deletion=true')
  await kubectl(['annotate', kind, 'fra', 'mooring.dev/allow-deletion=true'])
  await kubectl(['delete', kind, 'fra', '--dry-run=server'])
  await kubectl(['annotate', kind, 'fra', 'mooring.dev/allow-deletion-'])
})

test(
  'helm uninstall fails with instructions while data exists, and a rollback restores the release',
  { timeout: patient(360_000) },
  async () => {
    const refused = helm(['uninstall', 'mooring', ...IN_SYSTEM, '--timeout', '2m'])
    await expect(refused).rejects.toThrow(
      /nothing was done: there are .*5 sharedinstances.*2 tunnels.*helm rollback mooring 5 -n mooring-system/,
    )
    await helm(['rollback', 'mooring', '5', ...IN_SYSTEM, ...WAIT])
    await ready('sharedinstance/pr-1234', '--namespace', 'acme--prod')
  },
)

test(
  'the Namespace of database servers is deleted with its annotation, and comes back with an upgrade and resets',
  { timeout: patient(360_000) },
  async () => {
    const shared = 'mooring-shared'
    await expect(kubectl(['delete', 'namespace', shared])).rejects.toThrow('mooring.dev/delete-data=true')
    await kubectl(['annotate', 'namespace', shared, 'mooring.dev/delete-data=true'])
    await kubectl(['delete', 'namespace', shared, KUBECTL_WAIT])
    const instance = ['sharedinstance/pr-1234', '--namespace', 'acme--prod']
    const missing = '--for=jsonpath={.status.conditions[?(@.type=="Ready")].reason}=DatabaseMissing'
    await kubectl(['wait', missing, ...instance, KUBECTL_WAIT])

    await helm(['upgrade', 'mooring', CHART, ...IN_SYSTEM, '--reuse-values', ...WAIT])
    await kubectl(['patch', ...instance, '--type', 'merge', '--patch', '{"spec":{"resetVersion":1}}'])
    await ready('sharedinstance/pr-1234', '--namespace', 'acme--prod')
  },
)

test('helm uninstall with deleteData leaves nothing behind', async () => {
  const names = async (...args: string[]) => (await kubectl(['get', ...args, '--output', 'name'])).split('\n').filter(Boolean)
  expect(await names('persistentvolumes')).not.toEqual([])
  const allow = ['--set', 'uninstall.deleteData=true']
  await helm(['upgrade', 'mooring', CHART, ...IN_SYSTEM, '--reuse-values', ...allow, ...WAIT])
  await helm(['uninstall', 'mooring', ...IN_SYSTEM, ...WAIT])

  const kinds = [
    ...['namespaces', 'customresourcedefinitions', 'clusterroles', 'clusterrolebindings'],
    ...['validatingwebhookconfigurations', 'validatingadmissionpolicies', 'validatingadmissionpolicybindings'],
  ]
  const ofCluster = (await names(kinds.join(','))).filter((name) => /mooring|acme/.test(name))
  expect(ofCluster).toEqual(['namespace/mooring-system'])
  // PersistentVolumes are named after the uids of their claims and end some time later. This cluster has no other volumes.
  await expect.poll(() => names('persistentvolumes'), LATER).toEqual([])
  const inSystem = await names(
    'all,secrets,leases,configmaps,serviceaccounts,roles,rolebindings,networkpolicies,pdb',
    ...IN_SYSTEM,
  )
  // Kubernetes creates these two objects in every namespace.
  expect(inSystem.sort()).toEqual(['configmap/kube-root-ca.crt', 'serviceaccount/default'])
  expect((await names('roles,rolebindings', '--namespace', 'default')).filter((name) => name.includes('mooring'))).toEqual([])
})
