import { expect, test } from 'vitest'
import { type Motor, MOTORS, partsOf } from '../../../crds/motor.ts'
import type { Plan } from '../../../crds/plan.ts'
import { region as regionWith } from '../../../test/builders/resources.ts'
import { server, service } from '../../../test/support/operator/kubernetes-objects.ts'
import type { StatefulSet } from '../../kubernetes/kinds.ts'
import { at } from './engine-pod.ts'
import { type Existing, type PlacementFacts, placementOf, type DesiredServer, POD_SETTINGS } from './desired-server.ts'

const nothing: Existing = { statefulSet: undefined, service: undefined }
const plan = { spec: { cpu: 2, memoryMiB: 4096, storageGiB: 50 } } as Plan
const facts = { settings: POD_SETTINGS, region: () => regionWith(), plan: () => undefined }
const image = 'registry.example/patched:1'
const motors = [{ id: 'postgresql-15.4.0', warm: true, image }] as const
const live = {
  spec: { volumeClaimTemplates: [], template: { spec: { containers: [{ name: 'postgresql', image }] } } },
} as unknown as StatefulSet

interface Placement {
  readonly does: string
  readonly more: Partial<PlacementFacts>
  readonly existing?: Existing
  readonly expected: Partial<DesiredServer>
}

const PLACEMENTS: readonly Placement[] = [
  {
    does: 'the official image, within the cluster',
    more: {},
    expected: { image: 'postgres:15.4', exposure: 'ClusterIP', host: undefined },
  },
  { does: 'the region’s image', more: { region: () => regionWith({ motors }) }, expected: { image } },
  {
    does: 'the region’s exposure, host and nodes',
    more: {
      region: () => regionWith({ databases: { exposure: 'NodePort', host: 'db.example' }, nodeSelector: { disk: 'ssd' } }),
    },
    expected: { exposure: 'NodePort', host: 'db.example', nodeSelector: { disk: 'ssd' } },
  },
  {
    does: 'its present placement, when its region is gone',
    more: { region: () => undefined },
    existing: { statefulSet: live, service: service({ type: 'LoadBalancer' }) },
    expected: { image, exposure: 'LoadBalancer' },
  },
]

test.each(PLACEMENTS)('a server gets $does', ({ more, existing = nothing, expected }) => {
  expect(placementOf(server, { ...facts, ...more }, existing)).toMatchObject(expected)
})

test('a plan requests all resources that the server may use', () => {
  const planned = { ...server, spec: { ...server.spec, plan: 'm' } }
  const size = { cpu: 2, cpuLimit: 2, memoryMiB: 4096, memoryLimitMiB: 4096, storageGiB: 50 }
  expect(placementOf(planned, { ...facts, plan: () => plan }, nothing)).toMatchObject({ size })
  expect(() => placementOf(planned, facts, nothing)).toThrow(expect.objectContaining({ code: 'unknown_plan' }))
})

test('a motor without an image is not served', () => {
  const settings = { ...POD_SETTINGS, images: {} }
  expect(placementOf(server, { ...facts, settings }, nothing)).toMatchObject({ phase: 'failed', reason: 'MotorUnavailable' })
})

test.each(MOTORS)('%s has a pod with the image of its exact version', (motor) => {
  const { family, version } = partsOf(motor)
  const placement = placementOf({ ...server, spec: { ...server.spec, motor } }, facts, nothing)
  const [, tag] = 'image' in placement ? placement.image.split(':') : []
  expect(placement).toMatchObject({ engine: { name: family } })
  expect(`${version}.`.startsWith(`${tag}.`)).toBe(true)
})

test('a server requires TLS unless its region does not, and keeps that when its region is gone', () => {
  const plain = () => regionWith({ motors: [{ id: 'postgresql-15.4.0', warm: true, tls: 'none' }] })
  expect(placementOf(server, facts, nothing)).toMatchObject({ tls: true })
  expect(placementOf(server, { ...facts, region: plain }, nothing)).toMatchObject({ tls: false })
  const gone = { ...facts, region: () => undefined }
  expect(placementOf({ ...server, status: { tls: 'none' } }, gone, nothing)).toMatchObject({ tls: false })
})

test('only PostgreSQL has the region’s directory of extensions', () => {
  const region = (id: Motor) => () => regionWith({ motors: [{ id, warm: true, extensionDirectory: '/extensions' }] })
  const mysql = { ...server, spec: { ...server.spec, motor: 'mysql-8.0.29' as const } }
  expect(placementOf(server, { ...facts, region: region('postgresql-15.4.0') }, nothing)).toMatchObject({
    outputAt: '/extensions',
  })
  expect(placementOf(mysql, { ...facts, region: region('mysql-8.0.29') }, nothing)).toMatchObject({ outputAt: at.prepared })
})

test('a server of Mooring’s own is reachable only within the cluster, whatever its region exposes', () => {
  const shown = () => regionWith({ databases: { exposure: 'NodePort', host: 'db.example' }, nodeSelector: { disk: 'ssd' } })
  const own = { ...server, spec: { ...server.spec, tenancy: 'internal' as const } }
  const expected = { exposure: 'ClusterIP', host: undefined, nodeSelector: { disk: 'ssd' } }
  expect(placementOf(own, { ...facts, region: shown }, nothing)).toMatchObject(expected)
})
