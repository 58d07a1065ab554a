import { pino } from 'pino'
import { expect, test } from 'vitest'
import { StoreError, type Store, type WatchEvent, type WatchOptions } from '../../../store/port.ts'
import { node } from '../../../test/support/operator/kubernetes-objects.ts'
import type { Node } from '../../kubernetes/kinds.ts'
import { createNodes } from './nodes.ts'

type Event = WatchEvent<typeof Node>

/** Nodes of an API server that lists `first`, then sends the events of `tell`, which resolves when an event has been handled. */
function stage(first: readonly Node[] = []) {
  const told: Event[] = []
  let wake = Promise.withResolvers<undefined>()
  let taken = Promise.withResolvers<undefined>()
  async function* watch({ signal }: WatchOptions): AsyncGenerator<Event> {
    const ended = new Promise((resolve) => {
      signal.addEventListener('abort', resolve, { once: true })
    })
    while (!signal.aborted) {
      for (const event of told.splice(0)) yield event
      taken.resolve(undefined)
      await Promise.race([wake.promise, ended])
      wake = Promise.withResolvers()
    }
  }
  const store: Pick<Store, 'list' | 'watch'> = {
    list: () => Promise.resolve({ items: first, resourceVersion: '1' }) as ReturnType<Store['list']>,
    watch: (_, options) => watch(options),
  } as Pick<Store, 'list' | 'watch'>
  const changes = { count: 0 }
  const nodes = createNodes({
    store: store as Store,
    logger: pino({ level: 'silent' }),
    onChange: () => void (changes.count += 1),
  })
  const stop = new AbortController()
  const running = nodes.run(stop.signal)
  return {
    ...{ nodes, changes },
    async tell(event: Event) {
      told.push(event)
      taken = Promise.withResolvers()
      wake.resolve(undefined)
      await taken.promise
    },
    async [Symbol.asyncDispose]() {
      stop.abort()
      await running
    },
  }
}

const at = (object: Node, revision: string): Node => ({ ...object, metadata: { ...object.metadata, resourceVersion: revision } })

test('a node that joins is known and reported at once', async () => {
  await using there = stage([node('a', { podCIDRs: ['10.1.0.0/24'] })])
  expect(await there.nodes.list()).toHaveLength(1)
  const before = there.changes.count
  await there.tell({ type: 'added', object: at(node('b', { podCIDRs: ['10.1.1.0/24'] }), '2') })
  expect((await there.nodes.list()).flatMap(({ spec }) => spec.podCIDRs)).toEqual(['10.1.0.0/24', '10.1.1.0/24'])
  expect(there.changes.count).toBe(before + 1)
})

test.each([
  { what: 'a heartbeat', traits: {}, told: 0 },
  { what: 'a range of pods given to it', traits: { podCIDRs: ['10.1.0.0/24'] }, told: 1 },
  { what: 'another address', traits: { addresses: [{ type: 'InternalIP', address: '10.0.0.9' }] }, told: 1 },
  { what: 'another label', traits: { labels: { zone: 'a' } }, told: 1 },
])('$what is reported $told times', async ({ traits, told }) => {
  await using there = stage([node('a')])
  await there.nodes.list()
  const before = there.changes.count
  await there.tell({ type: 'modified', object: at(node('a', traits), '2') })
  expect(there.changes.count - before).toBe(told)
})

test('a node that leaves is reported', async () => {
  await using there = stage([node('a')])
  await there.nodes.list()
  const before = there.changes.count
  await there.tell({ type: 'deleted', object: at(node('a'), '2') })
  expect(await there.nodes.list()).toEqual([])
  expect(there.changes.count).toBe(before + 1)
})

test('without permission to list nodes the list is empty at once', async () => {
  const refuse = () => Promise.reject(new StoreError('forbidden', 'no right to nodes'))
  const nodes = createNodes({
    store: { list: refuse } as Partial<Store> as Store,
    logger: pino({ level: 'silent' }),
    onChange: () => undefined,
  })
  const stop = new AbortController()
  const running = nodes.run(stop.signal)
  expect(await nodes.list()).toEqual([])
  stop.abort()
  await running
})
