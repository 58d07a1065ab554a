import { expect, test } from 'vitest'
import { DatabaseServer } from '../../crds/database-server.ts'
import { notReady, ready, withCondition } from '../../store/conditions.ts'
import { createFirstObservation } from './reconciler.ts'
import type { ServerState } from './runtime.ts'

const UP = ready('Running', 'the server reports version 15.4')
const DOWN = notReady('Starting', 'the server is starting')
const starting: ServerState = { phase: 'starting' }
const running: ServerState = { phase: 'running', host: '127.0.0.1', port: 5432, admin: { host: '127.0.0.1', port: 5432 } }
const failed: ServerState = { phase: 'failed', reason: 'Crashed', message: 'it ended' }

function server(decision: typeof UP): DatabaseServer {
  const conditions = [...withCondition([], decision, { type: 'Ready', generation: 1, now: new Date(0) })]
  return {
    apiVersion: 'mooring.dev/v1alpha1',
    kind: DatabaseServer.kind,
    metadata: {
      name: 's',
      namespace: 'n',
      uid: 'u',
      resourceVersion: '1',
      generation: 1,
      creationTimestamp: '1970-01-01T00:00:00Z',
    },
    spec: { motor: 'postgresql-15.4.0', region: '0195d3c0-0000-7000-8000-000000000001', tenancy: 'shared', capacity: 50 },
    status: { conditions },
  }
}

interface Look {
  readonly state: ServerState
  readonly said: typeof UP
  readonly at: number
}

test.each<{ does: string; looks: readonly Look[]; unknown: readonly boolean[] }>([
  {
    does: 'a ready server counts as unknown until its first observation',
    looks: [{ state: starting, said: UP, at: 0 }],
    unknown: [true],
  },
  {
    does: 'a server is known from its first observation: a crash shows at once',
    looks: [
      { state: starting, said: UP, at: 0 },
      { state: running, said: UP, at: 100 },
      { state: starting, said: UP, at: 200 },
    ],
    unknown: [true, false, false],
  },
  {
    does: 'a server that does not come up in time is down',
    looks: [
      { state: starting, said: UP, at: 0 },
      { state: starting, said: UP, at: 14_999 },
      { state: starting, said: UP, at: 15_000 },
    ],
    unknown: [true, true, false],
  },
  { does: 'a failure shows at once', looks: [{ state: failed, said: UP, at: 0 }], unknown: [false] },
  { does: 'a server that was not ready before is starting', looks: [{ state: starting, said: DOWN, at: 0 }], unknown: [false] },
])('$does', ({ looks, unknown }) => {
  let at = 0
  const { isUnknown } = createFirstObservation(() => new Date(at))
  const seen = looks.map((look) => {
    at = look.at
    return isUnknown(server(look.said), look.state)
  })
  expect(seen).toEqual(unknown)
})

test('forget removes a deleted server', () => {
  const { isUnknown, forget } = createFirstObservation(() => new Date(0))
  isUnknown(server(UP), running)
  expect(isUnknown(server(UP), starting)).toBe(false)
  forget(server(UP))
  expect(isUnknown(server(UP), starting)).toBe(true)
})
