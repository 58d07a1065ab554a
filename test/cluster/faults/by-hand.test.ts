import { afterAll, beforeAll, describe, test } from 'vitest'
import { Namespace, Secret } from '../../../crds/core.ts'
import { namespaceName } from '../../../crds/names.ts'
import { SharedInstance } from '../../../crds/shared-instance.ts'
import { TenantNamespace } from '../../../crds/tenant-namespace.ts'
import { decodeSecret } from '../../../operator/secret-data.ts'
import { query } from '../../support/postgresql/sql.ts'
import { expectSuccess } from '../../support/api/tenant.ts'
import { type FaultBench, openFaultBench } from './bench.ts'
import { KUBECTL_WAIT, LATER, patient } from '../../support/patience.ts'

let bench: FaultBench
beforeAll(async () => {
  bench = await openFaultBench()
})
afterAll(() => bench[Symbol.asyncDispose]())

/** Both tests wait for the operator's periodic check and therefore run concurrently. */
describe.concurrent('by kubectl', () => {
  test(
    'a deleted Secret is restored under its name with a new, working password',
    { timeout: patient(240_000) },
    async ({ expect }) => {
      const { store } = bench.engines
      const instance = await bench.granted('careless')
      const { items } = await store.list(SharedInstance, { namespace: bench.namespace })
      const name = items.find(({ status }) => status?.name === instance.name)?.status?.secretRef?.name ?? ''
      const password = async () =>
        decodeSecret((await store.get(Secret, { namespace: bench.namespace, name }))?.data ?? {}, 'password')
      expect(await password()).toBe(instance.password)
      await bench.clients.kubectl(['delete', 'secret', name, '--namespace', bench.namespace])
      await expect.poll(password, LATER).toMatch(/^[0-9A-Za-z]{24}$/)
      // The engine gets the password shortly after the Secret. The answer waits for that.
      const restored = await bench.granted('careless')
      expect(restored).toMatchObject({ id: instance.id, name: instance.name, password: await password() })
      expect(restored.password).not.toBe(instance.password)
      expect(await query(restored, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
      await expect(query(instance, 'SELECT 1')).rejects.toMatchObject({ code: '28P01' })
    },
  )

  test(
    'the deletion of a namespace with 20 instances removes all their databases',
    { timeout: patient(240_000) },
    async ({ expect }) => {
      const { call, installation } = bench.deployment
      const { organization } = bench.tenant
      const doomed = { slug: 'doomed', name: namespaceName(organization, 'doomed') }
      await expectSuccess(
        call('POST', `/v1/organizations/${organization}/namespaces`, { body: { slug: doomed.slug, name: 'Doomed' } }),
      )
      const items = Array.from({ length: 20 }, (_, index) => ({
        apiVersion: 'mooring.dev/v1alpha1',
        kind: 'SharedInstance',
        metadata: { name: `doomed-${index}`, namespace: doomed.name },
        spec: { identifier: `doomed-${index}`, region: installation.region.id, motor: installation.motor },
      }))
      const { kubectl } = bench.clients
      await kubectl(['apply', '--filename', '-'], { apiVersion: 'v1', kind: 'List', items })
      await kubectl(['wait', '--for=condition=Ready', 'sharedinstances', '--all', '--namespace', doomed.name, KUBECTL_WAIT])
      await kubectl(['delete', 'namespace', doomed.name, KUBECTL_WAIT])
      expect(await bench.engines.store.get(Namespace, { name: doomed.name })).toBeUndefined()
      await expect.poll(() => bench.engines.amiss(), LATER).toEqual([])
      expect(await bench.engines.store.get(TenantNamespace, { name: doomed.name })).toBeUndefined()
    },
  )
})
