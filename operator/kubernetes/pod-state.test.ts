import { expect, test } from 'vitest'
import { pod } from '../../test/support/operator/kubernetes-objects.ts'
import type { ContainerStatus } from './kinds.ts'
import { podState } from './pod-state.ts'

const isShowable = (line: string) => line.includes('FATAL')

const container = (traits: Partial<ContainerStatus>): ContainerStatus => ({
  ...{ name: 'postgresql', ready: false, restartCount: 0, image: 'postgres:15.4', state: {}, lastState: {} },
  ...traits,
})
const ended = (exitCode: number, message?: string) => ({
  terminated: { exitCode, reason: 'Error', ...(message !== undefined && { message }) },
})
const waits = (reason: string, message?: string) => ({ waiting: { reason, ...(message !== undefined && { message }) } })
const main = (traits: Partial<ContainerStatus>) => pod({ containerStatuses: [container(traits)] })
const initial = (traits: Partial<ContainerStatus>) =>
  pod({ initContainerStatuses: [container({ name: 'initialise', ...traits })] })
const unscheduled = [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/1 nodes are available' }]

test.each([
  { does: 'no pod', of: undefined, expected: { phase: 'starting', message: 'its pod does not exist yet' } },
  {
    does: 'a terminating pod',
    of: pod({ containerStatuses: [container({ ready: true })] }, { deletionTimestamp: '2026-01-01T00:00:00Z' }),
    expected: { phase: 'starting', message: 'its pod is being replaced' },
  },
  {
    does: 'an unscheduled pod',
    of: pod({ conditions: unscheduled }),
    expected: { message: 'no node accepts it: 0/1 nodes are available' },
  },
  { does: 'a starting pod', of: main({ state: { running: {} } }), expected: { phase: 'starting' } },
  { does: 'a ready pod', of: main({ ready: true, state: { running: {} } }), expected: { phase: 'serving' } },
  { does: 'a pod whose data directory is complete', of: initial({ state: ended(0) }), expected: { phase: 'starting' } },
  {
    does: 'a missing image',
    of: initial({ state: waits('ImagePullBackOff', 'not found') }),
    expected: { phase: 'failed', reason: 'MotorUnavailable', message: 'the image postgres:15.4 cannot be pulled: not found' },
  },
  {
    does: 'a crash loop with output that may be shown',
    of: main({
      state: waits('CrashLoopBackOff', 'back-off 10s'),
      lastState: ended(1, 'LOG:  a tenant’s\nFATAL:  no space left\n'),
    }),
    expected: { phase: 'failed', reason: 'Crashed', message: 'postgresql ended: FATAL:  no space left' },
  },
  {
    does: 'an exit without output that may be shown',
    of: initial({ state: ended(137, 'secret') }),
    expected: { phase: 'failed', reason: 'Crashed', message: 'initialise ended without output (Error, exit code 137)' },
  },
  {
    does: 'an image that refuses the data',
    of: initial({
      state: waits('CrashLoopBackOff', 'back-off 10s'),
      lastState: ended(1, 'REFUSED: its data were made by another\n'),
    }),
    expected: { phase: 'failed', reason: 'MotorUnavailable', message: 'its data were made by another' },
  },
  {
    does: 'a server that copies the beginning of a refusal',
    of: main({ state: ended(1, 'REFUSED: of a tenant\n') }),
    expected: { phase: 'failed', reason: 'Crashed', message: 'postgresql ended without output (Error, exit code 1)' },
  },
  {
    does: 'a program that the image lacks',
    of: main({ state: waits('RunContainerError', 'exec: "postgres": not found') }),
    expected: { phase: 'failed', reason: 'Crashed', message: 'postgresql cannot be started: exec: "postgres": not found' },
  },
])('the state of $does is $expected', ({ of, expected }) => {
  expect(podState(of, isShowable)).toMatchObject(expected)
})

test.each([
  { name: 'backup', state: waits('ImagePullBackOff', 'not found') },
  { name: 'exporter', state: waits('ImagePullBackOff', 'not found') },
  { name: 'exporter', state: waits('CrashLoopBackOff', 'back-off 10s restarting failed container') },
  { name: 'exporter', state: { terminated: { exitCode: 1 } } },
])('a server serves although the container $name beside it has failed', ({ name, state }) => {
  const beside = container({ name, state })
  const of = pod({ containerStatuses: [beside, container({ ready: true, state: { running: {} } })] })
  expect(podState(of, isShowable)).toEqual({ phase: 'serving' })
})
