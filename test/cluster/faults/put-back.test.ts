import { afterAll, beforeAll, expect, test } from 'vitest'
import { DatabaseServer } from '../../../crds/database-server.ts'
import type { Kind } from '../../../crds/kind.ts'
import { SHARED_NAMESPACE } from '../../../crds/names.ts'
import { SharedInstance } from '../../../crds/shared-instance.ts'
import { ConfigMap, NetworkPolicy, Service, StatefulSet } from '../../../operator/kubernetes/kinds.ts'
import { childNames } from '../../../operator/server/kubernetes/manifests.ts'
import { isReady } from '../../../store/conditions.ts'
import { query } from '../../support/postgresql/sql.ts'
import { type FaultBench, openFaultBench } from './bench.ts'
import { LATER } from '../../support/patience.ts'

let bench: FaultBench
/** Name of the DatabaseServer that the tests change. It has one instance. */
let server: string
beforeAll(async () => {
  bench = await openFaultBench()
  const instance = await bench.granted('tenant')
  await query(instance, 'CREATE TABLE kept AS SELECT 42 AS answer')
  const { items } = await bench.engines.store.list(SharedInstance, { namespace: bench.namespace })
  server = items[0]?.status?.serverRef?.name ?? ''
})
afterAll(() => bench[Symbol.asyncDispose]())

const IN_SHARED = ['--namespace', SHARED_NAMESPACE]
const read = (kind: Kind, name: string, what: string): Promise<string> =>
  bench.clients.kubectl(['get', kind.plural, name, ...IN_SHARED, '--output', `jsonpath=${what}`])

async function expectServing(): Promise<void> {
  const key = { namespace: SHARED_NAMESPACE, name: server }
  const ready = async () => {
    const found = await bench.engines.store.get(DatabaseServer, key)
    return found && isReady(found)
  }
  // A changed Service may give the server another address, so each attempt requests the instance again.
  const kept = async () => query(await bench.granted('tenant'), 'SELECT answer FROM kept')
  await expect.poll(kept, LATER).toEqual([{ answer: 42 }])
  await expect.poll(ready, LATER).toBe(true)
}

const container = (more: object) => ({ spec: { template: { spec: { containers: [{ name: 'postgresql', ...more }] } } } })

test.each([
  { does: 'unrestricted access', kind: NetworkPolicy, patch: { spec: { ingress: [{}], egress: [{}] } } },
  {
    does: 'another type of Service',
    kind: Service,
    patch: { spec: { type: 'ClusterIP', externalTrafficPolicy: null } },
    // The restored Service gets another node port, so the port is not compared.
    what: '{.spec.type} {.spec.externalTrafficPolicy}',
  },
  { does: 'another image', kind: StatefulSet, patch: container({ image: 'localhost/other:1' }) },
  { does: 'one more field', kind: StatefulSet, patch: { spec: { template: { spec: { hostNetwork: true } } } } },
  { does: 'no pods', kind: StatefulSet, patch: { spec: { replicas: 0 } } },
])('the operator reverts a manual change of a $kind.kind: $does', async ({ kind, patch, what = '{.spec}' }) => {
  const before = await read(kind, server, what)
  await bench.clients.kubectl(['patch', kind.plural, server, ...IN_SHARED, '--type=strategic', '--patch', JSON.stringify(patch)])
  await expect.poll(() => read(kind, server, what), LATER).toBe(before)
  await expectServing()
})

test('the operator reverts a manual change of the engine’s settings', async () => {
  const { config } = childNames(server)
  const before = await read(ConfigMap, config, '{.data}')
  const patch = JSON.stringify({ data: { 'postgresql.conf': 'ssl = off' } })
  await bench.clients.kubectl(['patch', ConfigMap.plural, config, ...IN_SHARED, '--type=merge', '--patch', patch])
  await expect.poll(() => read(ConfigMap, config, '{.data}'), LATER).toBe(before)
  await expectServing()
})
