import { expect, test } from 'vitest'
import type { StatefulSet } from '../../kubernetes/kinds.ts'
import { server, desired } from '../../../test/support/operator/kubernetes-objects.ts'
import { statefulSetOf } from './stateful-set.ts'
import { POD_SETTINGS } from './desired-server.ts'

const facts = { configHash: 'abc', live: undefined }

function podOf(traits: Parameters<typeof desired>[0] = {}) {
  const pod = statefulSetOf(desired(traits), facts).spec?.template.spec
  if (!pod) throw new Error('there is no pod')
  return { pod, containers: [...(pod.initContainers ?? []), ...pod.containers] }
}

test('the pod meets the pod security standard "restricted", with a file system that it cannot write to and no token', () => {
  const { pod, containers } = podOf()
  expect(pod.automountServiceAccountToken).toBe(false)
  expect(pod.securityContext).toMatchObject({
    ...{ runAsNonRoot: true, runAsUser: 999, runAsGroup: 999, fsGroup: 999, fsGroupChangePolicy: 'OnRootMismatch' },
    seccompProfile: { type: 'RuntimeDefault' },
  })
  expect(containers).toHaveLength(2)
  for (const { securityContext } of containers) {
    expect(securityContext).toEqual({
      ...{ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true },
      capabilities: { drop: ['ALL'] },
    })
  }
})

test('only the container that creates the data directory mounts the admin password', () => {
  const { pod, containers } = podOf()
  const admin = pod.volumes?.find(({ name }) => name === 'admin')?.secret
  expect(admin).toEqual({ secretName: 'pg-1-admin', defaultMode: 0o440, items: [{ key: 'password', path: 'password' }] })
  const having = containers.filter(({ volumeMounts = [] }) => volumeMounts.some(({ name }) => name === 'admin'))
  expect(having.map(({ name }) => name)).toEqual(['initialise'])
  expect(containers.every(({ env, envFrom }) => env === undefined && envFrom === undefined)).toBe(true)
})

test('the private key is readable only for root and the group of the engine, as PostgreSQL requires', () => {
  const { pod } = podOf()
  expect(pod.volumes?.find(({ name }) => name === 'certificate')?.secret).toEqual({ secretName: 'pg-1-tls', defaultMode: 0o440 })
})

test('requests and limits come from the size', () => {
  const size = { cpu: 0.25, cpuLimit: 2, memoryMiB: 300, memoryLimitMiB: 1000, storageGiB: 7 }
  const { pod, containers } = podOf({ size })
  for (const { resources } of containers) {
    expect(resources).toEqual({ requests: { cpu: '250m', memory: '300Mi' }, limits: { cpu: '2000m', memory: '1000Mi' } })
  }
  expect(pod.volumes?.find(({ name }) => name === 'shm')?.emptyDir).toEqual({ medium: 'Memory', sizeLimit: '250Mi' })
  const claims = statefulSetOf(desired({ size }), facts).spec?.volumeClaimTemplates
  expect(claims?.[0]?.spec?.resources?.requests).toEqual({ storage: '7Gi' })
})

test('volume claims stay unchanged when size and class change, as Kubernetes requires', () => {
  const live = {
    spec: {
      volumeClaimTemplates: [{ spec: { storageClassName: 'fast', resources: { requests: { storage: '1Gi' } } } }],
      template: { spec: { containers: [] } },
    },
  } as unknown as StatefulSet
  const settings = { ...POD_SETTINGS, storageClass: 'slow' }
  const spec = (known: StatefulSet | undefined) =>
    statefulSetOf(desired({ settings }), { ...facts, live: known }).spec?.volumeClaimTemplates?.[0]?.spec
  expect(spec(live)).toMatchObject({ storageClassName: 'fast', resources: { requests: { storage: '1Gi' } } })
  expect(spec(undefined)).toMatchObject({ storageClassName: 'slow', resources: { requests: { storage: '10Gi' } } })
})

test('it is owned by its DatabaseServer, a changed configuration restarts its pod, and its data outlives it', () => {
  const { metadata, spec } = statefulSetOf(desired(), facts)
  expect(metadata?.ownerReferences).toEqual([
    { apiVersion: 'mooring.dev/v1alpha1', kind: 'DatabaseServer', name: 'pg-1', uid: server.metadata.uid, controller: true },
  ])
  expect(metadata?.labels).toEqual(spec?.selector.matchLabels)
  expect(spec?.template.metadata?.labels).toEqual(spec?.selector.matchLabels)
  expect(spec?.template.metadata?.annotations).toEqual({ 'mooring.dev/config': 'abc' })
  expect(spec?.persistentVolumeClaimRetentionPolicy).toEqual({ whenDeleted: 'Retain', whenScaled: 'Retain' })
})

test('nodes and pull secrets are named only where there are any', () => {
  expect(podOf().pod).not.toHaveProperty('nodeSelector')
  expect(podOf().pod).not.toHaveProperty('imagePullSecrets')
  const { pod } = podOf({ nodeSelector: { disk: 'ssd' }, settings: { ...POD_SETTINGS, pullSecrets: ['registry'] } })
  expect(pod).toMatchObject({ nodeSelector: { disk: 'ssd' }, imagePullSecrets: [{ name: 'registry' }] })
})

test('the output of initialise is mounted over the extension files of the image', () => {
  const { pod, containers } = podOf()
  expect(pod.volumes?.find(({ name }) => name === 'output')?.emptyDir).toBeDefined()
  const mounts = containers.map(({ volumeMounts = [] }) => volumeMounts.find(({ name }) => name === 'output'))
  expect(mounts).toEqual([
    { name: 'output', mountPath: '/etc/mooring/output' },
    { name: 'output', mountPath: '/usr/share/postgresql/15/extension', readOnly: true },
  ])
})
