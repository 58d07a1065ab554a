import { expect, test } from 'vitest'
import { pod } from '../../../test/support/operator/server-objects.ts'
import { edgesState } from './edges-state.ts'
import type { Deployment } from './kinds.ts'

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
