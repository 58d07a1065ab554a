import { pino } from 'pino'
import { expect, test, vi } from 'vitest'
import { Namespace, Secret } from '../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../crds/names.ts'
import type { Tunnel } from '../crds/tunnel.ts'
import { TunnelConfig } from '../crds/tunnel-config.ts'
import { headerValuesSecret } from '../shared/edge-objects.ts'
import { tunnel } from '../test/builders/resources.ts'
import { openTemporaryStore } from '../test/support/store/temporary-store.ts'
import { createEdgeHeaderValues, type HeldValues } from './header-values.ts'

const HOSTNAME = '0123456789abcdef'
const key = { namespace: SYSTEM_NAMESPACE, name: headerValuesSecret(HOSTNAME) }
const base64 = (values: object) => ({ values: Buffer.from(JSON.stringify(values)).toString('base64') })

interface State {
  /** Key of the Secret that the header refers to; undefined: a literal value. */
  readonly ref?: string
  readonly generation: number
  /** Generation whose values the operator has copied, and the version of the copy. */
  readonly read?: readonly [number, string]
}

function stateOf({ ref, generation, read }: State): Tunnel {
  const value = ref === undefined ? { value: 'literal' } : { valueFrom: { secretKeyRef: { name: 's', key: ref } } }
  const config = TunnelConfig.parse({ liveHeaderModifications: [{ name: 'A', type: 'request', ...value }] })
  const [observedGeneration, version] = read ?? []
  const headerValues = observedGeneration === undefined || version === undefined ? undefined : { observedGeneration, version }
  return tunnel({ metadata: { generation }, spec: { config }, status: { hostname: HOSTNAME, headerValues } })
}

/** Values of an edge of the endpoint `mine`, over a store with a copy of the values. */
async function start(values?: object, kept?: HeldValues) {
  const { store, ...temporary } = await openTemporaryStore()
  await store.create(Namespace, { metadata: { name: SYSTEM_NAMESPACE } })
  const written = (of: object, endpoint = 'mine') => ({
    data: base64(of),
    metadata: { ...key, labels: { 'mooring.dev/endpoint': endpoint } },
  })
  if (values) await store.create(Secret, written(values))
  const keep = vi.fn<(hostname: string, held: HeldValues | undefined) => void>()
  const headers = createEdgeHeaderValues({
    ...{ store, endpoint: 'mine', log: pino({ level: 'silent' }) },
    kept: { all: () => new Map(kept ? [[HOSTNAME, kept]] : []), keep },
  })
  const arrivals = vi.fn()
  headers.onArrival(arrivals)
  return {
    ...{ store, headers, keep, arrivals },
    write: (of: object, endpoint?: string) => store.mergePatch(Secret, key, written(of, endpoint)),
    valueOf: (state: State) => headers.configOf(stateOf(state), HOSTNAME).liveHeaderModifications[0]?.value,
    async [Symbol.asyncDispose]() {
      headers[Symbol.dispose]()
      await temporary[Symbol.asyncDispose]()
    },
  }
}

test('the values of a change are used once they have arrived, and those before it until then', async () => {
  await using edge = await start({ 's/1': 'one' })
  const { valueOf, headers } = edge
  expect(valueOf({ generation: 1 })).toBe('literal')
  expect(valueOf({ ref: '1', generation: 2 })).toBe('literal')
  expect(valueOf({ ref: '1', generation: 2, read: [2, 'v1'] })).toBe('literal')
  await headers.loaded(60_000)
  expect(edge.arrivals).toHaveBeenCalledWith(HOSTNAME)
  expect(edge.keep).toHaveBeenLastCalledWith(HOSTNAME, { version: 'v1', values: { 's/1': 'one' } })
  expect(valueOf({ ref: '1', generation: 2, read: [2, 'v1'] })).toBe('one')

  // The next change: the operator has not read it yet, then the edge has not fetched it yet.
  expect(valueOf({ ref: '2', generation: 3, read: [2, 'v1'] })).toBe('one')
  await edge.write({ 's/2': 'two' })
  expect(valueOf({ ref: '2', generation: 3, read: [3, 'v2'] })).toBe('one')
  await headers.loaded(60_000)
  expect(valueOf({ ref: '2', generation: 3, read: [3, 'v2'] })).toBe('two')
})

test('a value that the operator has not found removes the header, also after a value', async () => {
  await using edge = await start({ 's/1': 'one' })
  expect(edge.valueOf({ ref: '1', generation: 1, read: [1, 'v1'] })).toBe('')
  await edge.headers.loaded(60_000)
  expect(edge.valueOf({ ref: '1', generation: 1, read: [1, 'v1'] })).toBe('one')
  await edge.write({})
  edge.valueOf({ ref: '1', generation: 1, read: [1, 'v2'] })
  await edge.headers.loaded(60_000)
  expect(edge.valueOf({ ref: '1', generation: 1, read: [1, 'v2'] })).toBe('')
})

test('a header is removed before its first value has arrived', async () => {
  await using edge = await start({ 's/1': 'one' })
  expect(edge.valueOf({ ref: '1', generation: 1 })).toBe('')
})

test('the values of the previous process are used at once', async () => {
  await using edge = await start(undefined, { version: 'v1', values: { 's/1': 'one' } })
  expect(edge.valueOf({ ref: '1', generation: 1, read: [1, 'v1'] })).toBe('one')
  edge.headers.forget(HOSTNAME)
  expect(edge.keep).toHaveBeenLastCalledWith(HOSTNAME, undefined)
  expect(edge.valueOf({ ref: '1', generation: 1, read: [1, 'v1'] })).toBe('')
})

test('values for another endpoint, and what is no copy, are not used, until they are right', async () => {
  await using edge = await start({ 's/1': 'one' })
  await edge.write({ 's/1': 'theirs' }, 'other')
  edge.valueOf({ ref: '1', generation: 1, read: [1, 'v1'] })
  await edge.headers.loaded(50)
  expect(edge.arrivals).not.toHaveBeenCalled()
  await edge.write({ 's/1': 'a\nb' })
  await edge.headers.loaded(200)
  expect(edge.arrivals).not.toHaveBeenCalled()
  await edge.write({ 's/1': 'one' })
  await edge.headers.loaded(60_000)
  expect(edge.valueOf({ ref: '1', generation: 1, read: [1, 'v1'] })).toBe('one')
})
