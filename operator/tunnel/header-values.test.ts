import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Secret } from '../../crds/core.ts'
import { annotations, SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { HEADERS_USABLE, Tunnel } from '../../crds/tunnel.ts'
import { headerValuesSecret } from '../../shared/edge-objects.ts'
import { parseCopy } from '../../shared/header-values.ts'
import { conditionOf } from '../../store/conditions.ts'
import type { Store } from '../../store/port.ts'
import { hostnameOf, inNamespace, NAMESPACE, startTunnels, web } from '../../test/support/operator/tunnel-controllers.ts'
import { encodeSecret } from '../secret-data.ts'

const item = (key: string, name = 'Authorization') => ({
  ...{ name, type: 'request' },
  valueFrom: { secretKeyRef: { name: 's', key } },
})
const config = (...liveHeaderModifications: readonly object[]) => ({ config: { liveHeaderModifications } })
const secret = inNamespace('s')

async function start() {
  const at = await startTunnels()
  await at.makeRegion()
  await at.makeEndpoint('a')
  return at
}

const create = (store: Store, spec: object, metadata: object = {}) =>
  store.create(Tunnel, { metadata: { ...web, ...metadata }, spec: { regionId: 1, ...spec } })
const problem = (tunnel: Tunnel) => conditionOf(tunnel, HEADERS_USABLE)
const isRead = ({ metadata, status }: Tunnel) => status?.headerValues?.observedGeneration === metadata.generation

/** Advances the clock until the tunnel is as desired: the Secrets are read at intervals. */
async function later(at: Awaited<ReturnType<typeof start>>, desired: (tunnel: Tunnel) => boolean): Promise<Tunnel> {
  const found = at.until('web', desired)
  for (;;) {
    await at.advance(1_000)
    const tunnel = await Promise.race([found, setTimeout(5)])
    if (tunnel) return tunnel
  }
}

/** Values that the edges of a tunnel read. */
async function copied(store: Store, tunnel: Tunnel): Promise<object | undefined> {
  const found = await store.get(Secret, { namespace: SYSTEM_NAMESPACE, name: headerValuesSecret(hostnameOf(tunnel)) })
  if (!found) return undefined
  expect(found.metadata).toMatchObject({ labels: { 'mooring.dev/endpoint': 'a' } })
  const values = parseCopy(Buffer.from(found.data.values ?? '', 'base64').toString())
  return values && Object.fromEntries(values)
}

test('values are copied before the tunnel is ready, and a change of the Secret is followed', async () => {
  await using at = await start()
  await at.store.create(Secret, { metadata: secret, data: encodeSecret({ token: 'Bearer 1\n' }) })
  await create(at.store, config(item('token')))
  const ready = await at.reason('Assigned')
  expect(await copied(at.store, ready)).toEqual({ 's/token': 'Bearer 1' })
  expect(problem(ready)).toBeUndefined()
  const { version } = ready.status?.headerValues ?? {}
  await at.store.mergePatch(Secret, secret, { data: encodeSecret({ token: 'Bearer 2' }) })
  const changed = await later(at, ({ status }) => status?.headerValues?.version !== version)
  expect(await copied(at.store, changed)).toEqual({ 's/token': 'Bearer 2' })
})

test('a value that is missing has a condition, is not copied, and is found soon after the tunnel was created', async () => {
  await using at = await start()
  await create(at.store, config(item('token'), item('other', 'X-Other')))
  const missing = await at.until('web', (tunnel) => problem(tunnel)?.reason === 'SecretMissing')
  expect(problem(missing)).toMatchObject({
    status: 'False',
    message: 'there is no such Secret: Secret s, key token; removed until then: Authorization, X-Other',
  })
  await at.store.create(Secret, { metadata: secret, data: encodeSecret({ other: 'a\nX-Injected: b' }) })
  await later(at, (tunnel) => problem(tunnel)?.reason === 'KeyMissing')
  await at.store.mergePatch(Secret, secret, { data: encodeSecret({ token: 'x' }) })
  const invalid = await later(at, (tunnel) => problem(tunnel)?.reason === 'InvalidValue')
  expect(await copied(at.store, invalid)).toEqual({ 's/token': 'x' })
  await at.store.mergePatch(Secret, secret, { data: encodeSecret({ other: 'y' }) })
  const whole = await later(at, (tunnel) => problem(tunnel) === undefined)
  expect(await copied(at.store, whole)).toEqual({ 's/token': 'x', 's/other': 'y' })
})

test('the copy is deleted with the last reference, and with the tunnel', async () => {
  await using at = await start()
  await at.store.create(Secret, { metadata: secret, data: encodeSecret({ token: 'x' }) })
  await create(at.store, config(item('token')))
  await at.until('web', isRead)
  await at.store.mergePatch(Tunnel, web, { spec: config() })
  const without = await at.until('web', ({ status }) => status?.headerValues === undefined)
  expect(await copied(at.store, without)).toBeUndefined()
  await at.store.mergePatch(Tunnel, web, { spec: config(item('token')) })
  expect(await copied(at.store, await at.until('web', isRead))).toEqual({ 's/token': 'x' })
  await at.store.delete(Tunnel, web)
  await at.gone()
  expect(await copied(at.store, without)).toBeUndefined()
})

test.each([
  { by: 'the REST API', annotation: { [annotations.createdBy]: 'local:a' }, moved: true },
  { by: 'kubectl', annotation: {}, moved: false },
])('whether literal values of a tunnel made by $by are moved into its Secret: $moved', async ({ annotation, moved }) => {
  await using at = await start()
  const literal = { name: 'Authorization', value: 'Bearer 1', type: 'request' }
  const removal = { name: 'X-B', value: '', type: 'response' }
  await create(at.store, config(literal, removal), { annotations: annotation })
  const tunnel = moved ? await at.until('web', isRead) : await at.reason('Assigned')
  const own = await at.store.get(Secret, { namespace: NAMESPACE, name: 'web-headers' })
  if (!moved) {
    expect(tunnel.spec.config.liveHeaderModifications).toEqual([literal, removal])
    expect(own).toBeUndefined()
    return
  }
  expect(JSON.stringify(tunnel.spec)).not.toContain('Bearer')
  expect(tunnel.spec.config.liveHeaderModifications[1]).toEqual(removal)
  expect(own?.metadata.ownerReferences).toMatchObject([{ kind: 'Tunnel', uid: tunnel.metadata.uid }])
  expect(Object.values((await copied(at.store, tunnel)) ?? {})).toEqual(['Bearer 1'])
})
