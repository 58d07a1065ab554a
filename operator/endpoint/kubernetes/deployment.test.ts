import { expect, test } from 'vitest'
import { deploymentOf, edgesState } from './deployment.ts'
import { endpoint, settings, pod } from '../../../test/support/operator/kubernetes-objects.ts'
import type { Deployment } from './kinds.ts'

const podOf = (spec: object = {}, given: object = {}) => deploymentOf(endpoint(spec), settings(given), 'uid').spec?.template

test('edges are replaced one by one, each after a new one is ready, and have a minute to stop', () => {
  const { spec } = deploymentOf(endpoint({ replicas: 3 }), settings(), 'uid')
  expect(spec).toMatchObject({ replicas: 3, strategy: { rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } } })
  expect(spec?.template.spec?.terminationGracePeriodSeconds).toBe(60)
})

test('a pod has minimal privileges: not root, one writable directory, no key of a CA', () => {
  const spec = podOf()?.spec
  expect(spec).toMatchObject({
    serviceAccountName: 'edge-eu',
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      { securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } } },
    ],
  })
  const mounts = spec?.containers[0]?.volumeMounts ?? []
  expect(mounts.filter(({ readOnly }) => readOnly !== true).map(({ name }) => name)).toEqual(['data'])
  const mesh = spec?.volumes?.find(({ name }) => name === 'mesh')?.secret
  expect(mesh?.items?.map(({ key }) => key)).toEqual(['ca.crt', 'tls.crt', 'tls.key'])
})

test.each([
  { what: 'the number of edges', spec: { replicas: 5 }, same: true },
  { what: 'whether it accepts new tunnels', spec: { active: false }, same: true },
  { what: 'the public ports of clients', spec: { ports: { ssh: 30_022 } }, same: true },
  { what: 'the issuer of certificates', spec: { issuer: 'acme' }, same: true },
  { what: 'the public port', spec: { publicHttpsPort: 8443 }, same: false },
  { what: 'the trusted proxies', spec: { proxyProtocol: { trustedCIDRs: ['10.0.0.0/8'] } }, same: false },
])('a change of $what leaves the pods unchanged: $same', ({ spec, same }) => {
  expect(JSON.stringify(podOf(spec)) === JSON.stringify(podOf())).toBe(same)
})

test('the pod settings of the chart are in the pods', () => {
  const given = {
    ...{ pullSecrets: ['registry'], priorityClassName: 'high', nodeSelector: { edge: 'yes' }, heapMiB: 900, logLevel: 'debug' },
    tolerations: [{ key: 'edge', operator: 'Exists' }],
    resources: { requests: { cpu: 2 }, limits: { memory: '1Gi' } },
    extraEnv: [{ name: 'A', value: 'b' }],
  }
  const spec = podOf({}, given)?.spec
  expect(spec).toMatchObject({
    imagePullSecrets: [{ name: 'registry' }],
    priorityClassName: 'high',
    nodeSelector: { edge: 'yes' },
    tolerations: [{ key: 'edge' }],
  })
  const [container] = spec?.containers ?? []
  expect(container?.resources).toEqual({ requests: { cpu: '2' }, limits: { memory: '1Gi' } })
  expect(container?.env).toEqual(
    expect.arrayContaining([
      { name: 'NODE_OPTIONS', value: '--max-old-space-size=900' },
      { name: 'MOORING_ENDPOINT', value: 'eu' },
      { name: 'MOORING_LOG_LEVEL', value: 'debug' },
      { name: 'A', value: 'b' },
    ]),
  )
})

test('pods are replaced when their service account was recreated, as their tokens are invalid', () => {
  const of = (account: string) => deploymentOf(endpoint(), settings(), account).spec?.template.metadata?.annotations
  expect(of('a')).not.toEqual(of('b'))
})

test.each([
  { journal: 'of Mooring’s own', given: {}, optional: undefined },
  { journal: 'outside', given: { journalOutside: true }, optional: true },
])('edges start without the login to a journal $journal: $optional', ({ given, optional }) => {
  const volumes = podOf({}, given)?.spec?.volumes ?? []
  expect(volumes.map(({ name, secret }) => [name, secret?.optional])).toContainEqual(['journal', optional])
})

const deployment = (status?: object, replicas = 2) => ({ spec: { replicas }, status }) as unknown as Deployment
const waiting = (reason: string, message: string) =>
  pod({
    containerStatuses: [
      { name: 'edge', ready: false, restartCount: 0, image: 'x:1', state: { waiting: { reason, message } }, lastState: {} },
    ],
  })

test.each([
  { does: 'ready edges are counted', status: { readyReplicas: 2 }, pods: [], state: { ready: 2 } },
  { does: 'without a pod no edge is ready', status: undefined, pods: [], state: { ready: 0, message: 'no edge answers yet' } },
  {
    does: 'an image that cannot be pulled is reported',
    status: { readyReplicas: 0, conditions: [] },
    pods: [waiting('ErrImagePull', 'not found')],
    state: { ready: 0, message: 'the image x:1 cannot be pulled: not found', isFailing: true },
  },
  {
    does: 'an unscheduled pod is no failure',
    status: { readyReplicas: 0, conditions: [] },
    pods: [pod({ conditions: [{ type: 'PodScheduled', status: 'False', message: '0/1 nodes are available' }] })],
    state: { ready: 0, message: 'no node accepts it: 0/1 nodes are available' },
  },
  {
    does: 'rejected pods are reported',
    status: { readyReplicas: 0, conditions: [{ type: 'ReplicaFailure', status: 'True', message: 'exceeded quota' }] },
    pods: [],
    state: { ready: 0, message: 'its pods cannot be created: exceeded quota', isFailing: true },
  },
])('$does', ({ status, pods, state }) => {
  expect(edgesState(deployment(status), pods)).toEqual(state)
})

test('zero desired edges are reported', () => {
  expect(edgesState(deployment(undefined, 0), [])).toEqual({ ready: 0, message: 'no edges are desired: spec.replicas is 0' })
})
