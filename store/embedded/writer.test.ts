import { expect, test } from 'vitest'
import { Namespace } from '../../crds/core.ts'
import { StoreError } from '../port.ts'
import type { Batch } from './sqlite.ts'
import { type Change, Table } from './table.ts'
import { created, deleted } from './operations.ts'
import { createWriter } from './writer.ts'

/** Writer over a disk whose responses the test controls. */
function withDisk(observe: () => void = () => undefined) {
  const asked: { batch: Batch; answer: PromiseWithResolvers<undefined> }[] = []
  let arrived = Promise.withResolvers<undefined>()
  const committed: Change[] = []
  const failures: number[] = []
  const complaints: unknown[] = []
  const writer = createWriter({
    database: {
      commit(batch) {
        const answer = Promise.withResolvers<undefined>()
        asked.push({ batch, answer })
        arrived.resolve(undefined)
        return answer.promise
      },
    },
    table: new Table(),
    revision: 7,
    observers: [() => observe(), (changes) => void committed.push(...changes)],
    onObserverError: (error) => void complaints.push(error),
    onFailure: (_error, writes) => void failures.push(writes),
  })
  return {
    writer,
    committed,
    failures,
    complaints,
    create: (name: string) =>
      writer.write(Namespace, () => created(Namespace, { metadata: { name } }, { uid: name, now: '2030-01-01T00:00:00Z' })),
    remove: (name: string) =>
      writer.write(Namespace, (head) => {
        const current = head.get(Namespace, { name })
        if (!current) throw new StoreError('not_found', 'not there')
        return { type: 'deleted', object: deleted(Namespace, current, '2030-01-01T00:00:00Z').object }
      }),
    nextCommit: async () => {
      if (asked.length === 0) await arrived.promise
      arrived = Promise.withResolvers<undefined>()
      const next = asked.shift()
      if (!next) throw new Error('nothing was committed')
      return next
    },
  }
}

const codes = (outcomes: PromiseSettledResult<unknown>[]): string[] =>
  outcomes.map((outcome) => (outcome.status === 'fulfilled' ? 'ok' : (outcome.reason as StoreError).code))

test('a failed commit fails all writes in progress and queued behind it, and the head is reset', async () => {
  const { create, nextCommit, writer, failures } = withDisk()
  const first = create('a')
  const { answer } = await nextCommit()
  const second = create('b')
  answer.reject(new Error('disk full'))
  expect(codes(await Promise.allSettled([first, second]))).toEqual(['unavailable', 'unavailable'])
  expect(failures).toEqual([2])
  expect([writer.head().list(Namespace), writer.visible().list(Namespace), writer.revision()]).toEqual([[], [], 7])
})

test('the next write after a failure succeeds, at the revision of the failed write', async () => {
  const { create, nextCommit, writer } = withDisk()
  const failing = Promise.allSettled([create('a')])
  ;(await nextCommit()).answer.reject(new Error('disk full'))
  await failing
  const creating = create('a')
  const { batch, answer } = await nextCommit()
  answer.resolve(undefined)
  expect((await creating).metadata.resourceVersion).toBe('8')
  expect([batch.revision, batch.puts.length, writer.revision()]).toEqual([8, 1, 8])
})

test('"not found" is returned only when the deletion that causes it is durable', async () => {
  const { create, remove, nextCommit } = withDisk()
  const creating = create('a')
  ;(await nextCommit()).answer.resolve(undefined)
  await creating
  const outcomes = Promise.allSettled([remove('a'), remove('a')])
  ;(await nextCommit()).answer.reject(new Error('disk full'))
  expect(codes(await outcomes)).toEqual(['unavailable', 'unavailable'])
  const again = Promise.allSettled([remove('a'), remove('a')])
  ;(await nextCommit()).answer.resolve(undefined)
  expect(codes(await again)).toEqual(['ok', 'not_found'])
})

test('a write that changes nothing is acknowledged only when the state that it saw is durable', async () => {
  const { create, nextCommit, writer } = withDisk()
  const creating = create('a')
  const noop = writer.write(Namespace, (head) => {
    const object = head.get(Namespace, { name: 'a' })
    if (!object) throw new StoreError('not_found', 'not there')
    return { type: 'none', object }
  })
  const outcomes = Promise.allSettled([creating, noop])
  ;(await nextCommit()).answer.reject(new Error('disk full'))
  expect(codes(await outcomes)).toEqual(['unavailable', 'unavailable'])
})

test('an error of an observer is reported; the write succeeds, and the other observers are called', async () => {
  const trouble = new Error('a watcher broke')
  const { create, nextCommit, writer, committed, complaints, failures } = withDisk(() => {
    throw trouble
  })
  const creating = create('a')
  ;(await nextCommit()).answer.resolve(undefined)
  expect((await creating).metadata.resourceVersion).toBe('8')
  expect([committed.length, writer.revision(), complaints, failures]).toEqual([1, 8, [trouble], []])
  const next = create('b')
  ;(await nextCommit()).answer.resolve(undefined)
  expect((await next).metadata.resourceVersion).toBe('9')
})

test('of several changes of an object in a transaction, the disk gets the last one, observers get all', async () => {
  const { create, remove, nextCommit, committed } = withDisk()
  const writes = [create('a'), remove('a'), create('b')]
  const { batch, answer } = await nextCommit()
  answer.resolve(undefined)
  await Promise.all(writes)
  expect(batch.puts.map(({ name }) => name)).toEqual(['b'])
  expect(batch.removes.map(({ name }) => name)).toEqual(['a'])
  expect(committed.map(({ type, revision }) => `${type} ${revision}`)).toEqual(['added 8', 'deleted 9', 'added 10'])
})
