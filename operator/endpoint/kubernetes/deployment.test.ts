import { expect, test } from 'vitest'
import { deploymentOf } from './deployment.ts'
import { endpoint, settings } from '../../../test/support/operator/edge-objects.ts'

const podOf = (spec: object = {}, given: object = {}) => deploymentOf(endpoint(spec), settings(given), 'uid').spec?.template

test('edges are replaced one by one, none before another is there, and have a minute to go', () => {
  const { spec } = deploymentOf(endpoint({ replicas: 3 }), settings(), 'uid')
  expect(spec).toMatchObject({ replicas: 3, strategy: { rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } } })
  expect(spec?.template.spec?.terminationGracePeriodSeconds).toBe(60)
})

test('a pod may do nothing but what it must: not root, nothing to write on but its own directory, no key of an authority', () => {
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
  { what: 'how many there are', spec: { replicas: 5 }, same: true },
  { what: 'whether it takes new tunnels', spec: { active: false }, same: true },
  { what: 'the ports that clients are told', spec: { ports: { ssh: 30_022 } }, same: true },
  { what: 'who issues certificates', spec: { issuer: 'acme' }, same: true },
  { what: 'the public port', spec: { publicHttpsPort: 8443 }, same: false },
  { what: 'whom it believes', spec: { proxyProtocol: { trustedCIDRs: ['10.0.0.0/8'] } }, same: false },
])('$what: the pods stay as they are: $same', ({ spec, same }) => {
  expect(JSON.stringify(podOf(spec)) === JSON.stringify(podOf())).toBe(same)
})

test('what the values say about pods is in them', () => {
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

test('pods of a service account that was made anew are replaced: their tokens were the old one’s', () => {
  const of = (account: string) => deploymentOf(endpoint(), settings(), account).spec?.template.metadata?.annotations
  expect(of('a')).not.toEqual(of('b'))
})

test.each([
  { journal: 'of Mooring’s own', given: {}, optional: undefined },
  { journal: 'outside', given: { journalOutside: true }, optional: true },
])('a login to a journal $journal: whether edges start without it: $optional', ({ given, optional }) => {
  const volumes = podOf({}, given)?.spec?.volumes ?? []
  expect(volumes.map(({ name, secret }) => [name, secret?.optional])).toContainEqual(['journal', optional])
})
