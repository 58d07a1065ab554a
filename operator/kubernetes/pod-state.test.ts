import { expect, test } from 'vitest'
import { pod } from '../../test/support/operator/server-objects.ts'
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
  { does: 'no pod', of: undefined, expected: { phase: 'starting', message: 'its pod is not there yet' } },
  {
    does: 'one on its way out',
    of: pod({ containerStatuses: [container({ ready: true })] }, { deletionTimestamp: '2026-01-01T00:00:00Z' }),
    expected: { phase: 'starting', message: 'its pod is being replaced' },
  },
  {
    does: 'one that no node takes',
    of: pod({ conditions: unscheduled }),
    expected: { message: 'no node takes it: 0/1 nodes are available' },
  },
  { does: 'one that starts', of: main({ state: { running: {} } }), expected: { phase: 'starting' } },
  { does: 'one that is ready', of: main({ ready: true, state: { running: {} } }), expected: { phase: 'serving' } },
  { does: 'one that has made its data', of: initial({ state: ended(0) }), expected: { phase: 'starting' } },
  {
    does: 'an image that is not there',
    of: initial({ state: waits('ImagePullBackOff', 'not found') }),
    expected: { phase: 'failed', reason: 'MotorUnavailable', message: 'the image postgres:15.4 cannot be had: not found' },
  },
  {
    does: 'a crash loop, by the last words that may be shown',
    of: main({
      state: waits('CrashLoopBackOff', 'back-off 10s'),
      lastState: ended(1, 'LOG:  a tenant’s\nFATAL:  no space left\n'),
    }),
    expected: { phase: 'failed', reason: 'Crashed', message: 'postgresql ended: FATAL:  no space left' },
  },
  {
    does: 'an end without a word that may be shown',
    of: initial({ state: ended(137, 'secret') }),
    expected: { phase: 'failed', reason: 'Crashed', message: 'initialise ended without a word (Error, exit code 137)' },
  },
  {
    does: 'a program that the image lacks',
    of: main({ state: waits('RunContainerError', 'exec: "postgres": not found') }),
    expected: { phase: 'failed', reason: 'Crashed', message: 'postgresql cannot be started: exec: "postgres": not found' },
  },
])('of a server is known, by $does: $expected', ({ of, expected }) => {
  expect(podState(of, isShowable)).toMatchObject(expected)
})
