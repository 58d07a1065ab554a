import { expect, test } from 'vitest'
import { connectionRecord } from '../../test/conformance/journal/records.ts'
import type { ConnectionRecord } from '../../journal/port.ts'
import type { Pod } from '../kubernetes/kinds.ts'
import { createEndings, createPatience, endOf, lostSessions } from './lost-sessions.ts'

const BEGAN = Date.parse('2026-01-01T10:00:00Z')
const metadata = { uid: 'uid', resourceVersion: '1', generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' }
type Container = NonNullable<Pod['status']>['containerStatuses'][number]
type State = Container['state']

function podWith(state: State, lastState: State = {}, startTime?: string): Pod {
  const container: Container = { name: 'edge', ready: true, restartCount: 0, state, lastState }
  return {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { ...metadata, name: 'edge-a' }, spec: {} },
    status: { startTime, conditions: [], initContainerStatuses: [], containerStatuses: [container] },
  }
}
const running = podWith({ running: { startedAt: '2026-01-01T10:00:00Z' } })
const ended = { exitCode: 137, finishedAt: '2026-01-01T10:00:00Z' }
const session = (at: number): ConnectionRecord => connectionRecord({ tunnel: 't', edge: 'edge-a', at })

test.each([
  { does: 'a session of a deleted pod', at: BEGAN + 5_000, pods: [], lost: true },
  { does: 'a session of the former container', at: BEGAN - 1, pods: [running], lost: true },
  { does: 'a session of a container that has ended', at: BEGAN - 1, pods: [podWith({ terminated: ended })], lost: true },
  {
    does: 'a session of a container that will be restarted',
    at: BEGAN - 1,
    pods: [podWith({ waiting: {} }, { terminated: ended })],
    lost: true,
  },
  {
    does: 'no session that is older than its pod, whose node’s clock was set back since',
    at: BEGAN - 3_600_000,
    pods: [podWith({ running: { startedAt: '2026-01-01T10:00:00Z' } }, {}, '2026-01-01T09:59:58Z')],
    lost: false,
  },
  {
    does: 'a session of the former container in an older pod',
    at: BEGAN - 1,
    pods: [podWith({ running: { startedAt: '2026-01-01T10:00:00Z' } }, {}, '2026-01-01T09:00:00Z')],
    lost: true,
  },
  {
    does: 'a session from the second in which the container began, which accepts none so early',
    at: BEGAN + 999,
    pods: [running],
    lost: true,
  },
  {
    does: 'a session from the second in which the container ended',
    at: BEGAN + 999,
    pods: [podWith({ terminated: ended })],
    lost: true,
  },
  { does: 'no session of the running container', at: BEGAN + 1_000, pods: [running], lost: false },
  { does: 'no session of a pod without a status', at: BEGAN, pods: [podWith({})], lost: false },
])('$does is lost', ({ at, pods, lost }) => {
  expect(lostSessions([session(at)], pods)).toHaveLength(lost ? 1 : 0)
})

test('a lost session of an existing pod is ended after half a minute, others at once', () => {
  const patience = createPatience()
  const [before, gone] = [session(BEGAN - 1), connectionRecord({ tunnel: 't', edge: 'edge-b' })]
  const lost = lostSessions([before, gone], [running])
  expect(patience.due(lost, 0).map(({ session }) => session)).toEqual([gone])
  expect(patience.due(lost.slice(0, 1), 29_999)).toEqual([])
  expect(patience.due([], 29_999)).toEqual([])
  expect(patience.due(lost.slice(0, 1), 30_000)).toEqual([])
  expect(patience.due(lost.slice(0, 1), 60_000)).toHaveLength(1)
})

test('the end of a session has an id of its own and the latest possible time', () => {
  const open = session(BEGAN - 1_000)
  const end = endOf({ session: open, since: BEGAN }, BEGAN + 60_000)
  expect(end).toMatchObject({ type: 'disconnect', reason: 'edge_lost', sessionId: open.sessionId, at: BEGAN, durationMs: 1_000 })
  expect(end.id).not.toBe(open.id)
})

test('a session gets a second end only when the first was rejected', async () => {
  const kept: { readonly end: ConnectionRecord; readonly done: PromiseWithResolvers<undefined> }[] = []
  const endings = createEndings(async (end) => {
    const done = Promise.withResolvers<undefined>()
    kept.push({ end, done })
    await done.promise
  })
  const [one, another] = [session(BEGAN), session(BEGAN)].map((open) => ({ session: open, since: undefined }))
  if (!one || !another) throw new Error('there are two')
  const first = endings.end([one])
  const looked = endings.underWay()
  const second = endings.end([one, another])
  expect(kept.map(({ end }) => end.sessionId)).toEqual([one, another].map(({ session }) => session.sessionId))
  kept[0]?.done.resolve(undefined)
  kept[1]?.done.reject(new Error('refused'))
  expect([await first, await second]).toEqual([1, 0])
  // A caller that read the sessions before may still have the ended one as open.
  expect([[...looked], [...endings.underWay()]]).toEqual([[one.session.sessionId], []])
  void endings.end([another])
  expect(kept).toHaveLength(3)
})
