import { pino } from 'pino'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Namespace, Secret } from '../../crds/core.ts'
import { annotations } from '../../crds/names.ts'
import { TunnelWebhook } from '../../crds/tunnel-webhook.ts'
import { Tunnel } from '../../crds/tunnel.ts'
import { createAddressGuard } from '../../shared/outside-addresses.ts'
import { createWebhookSecrets } from '../../shared/webhook-secrets.ts'
import { createCacheSet } from '../../store/cache.ts'
import { conditionOf } from '../../store/conditions.ts'
import type { Store } from '../../store/port.ts'
import { openTemporaryStore } from '../../test/support/store/temporary-store.ts'
import { createReporter } from '../reporter.ts'
import { createController } from '../runtime/controller.ts'
import { decodeSecret } from '../secret-data.ts'
import { createWebhookController } from './controllers.ts'
import { webhookIndexes } from './indexes.ts'

const NAMESPACE = 'acme--prod'
const at = (name: string) => ({ namespace: NAMESPACE, name })
const secrets = createWebhookSecrets(Buffer.alloc(32, 3))
const BY_REST = { [annotations.createdBy]: 'local:alice' }

let parts: AsyncDisposableStack
let store: Store
let forgiven: string[]
beforeEach(async () => {
  parts = new AsyncDisposableStack()
  store = parts.use(await openTemporaryStore()).store
  forgiven = []
  const set = createCacheSet({ store, onError: () => undefined })
  const now = () => new Date()
  const controller = createWebhookController({
    ...{ store, secrets, now, tunnels: set.cached(Tunnel), webhooks: set.cached(TunnelWebhook, webhookIndexes) },
    outbox: { forgive: async (webhook) => void forgiven.push(webhook) },
    guard: createAddressGuard({ privateAddresses: false }),
    report: createReporter({ store, now }),
    onFailure: undefined,
    controller: (about) => createController({ ...about, log: pino({ level: 'silent' }), onResult: () => undefined }),
  })
  const stop = new AbortController()
  const work = [set.run(stop.signal), controller.run(stop.signal)]
  parts.defer(async () => {
    stop.abort()
    await Promise.all(work)
  })
  await store.create(Namespace, { metadata: { name: NAMESPACE } })
  await store.create(Tunnel, { metadata: at('web'), spec: { regionId: 1 } })
})
afterEach(() => parts.disposeAsync())

const create = (name: string, about: object = {}) =>
  store.create(TunnelWebhook, {
    metadata: { ...at(name), ...about },
    spec: { tunnelRef: { name: 'web' }, url: 'https://example.com/' },
  })
const get = (name: string) => store.get(TunnelWebhook, at(name))
const reasonOf = async (name: string) => {
  const webhook = await get(name)
  return webhook && conditionOf(webhook, 'Ready')?.reason
}
const secretOf = async (name: string) => {
  const secret = await store.get(Secret, at(`${name}-webhook`))
  return secret && decodeSecret(secret.data, 'secret')
}

test('a webhook made with kubectl gets its tunnel as owner and its secret in a Secret; one by REST gets no Secret', async () => {
  const { metadata } = await create('k')
  await create('r', { annotations: BY_REST })
  await expect.poll(() => Promise.all([reasonOf('k'), reasonOf('r')])).toEqual(['Active', 'Active'])
  expect((await get('k'))?.metadata.ownerReferences).toMatchObject([{ kind: 'Tunnel', name: 'web' }])
  expect((await get('k'))?.status?.secretRef).toEqual({ name: 'k-webhook' })
  expect(await secretOf('k')).toBe(secrets(metadata.uid, 1))
  expect([await secretOf('r'), (await get('r'))?.status?.secretRef]).toEqual([undefined, undefined])
  await store.mergePatch(TunnelWebhook, at('k'), { spec: { secretVersion: 2 } })
  await expect.poll(() => secretOf('k')).toBe(secrets(metadata.uid, 2))
  await store.delete(TunnelWebhook, at('k'))
  await expect.poll(() => secretOf('k')).toBeUndefined()
})

test('a Secret of another owner is left alone', async () => {
  await store.create(Secret, { metadata: at('k-webhook'), data: { secret: Buffer.from('theirs').toString('base64') } })
  await create('k')
  await expect.poll(() => reasonOf('k')).toBe('SecretNameTaken')
  expect(await secretOf('k')).toBe('theirs')
})

test('a disabled webhook is disabled in its spec too; enabling it again forgives its failures', async () => {
  const { metadata } = await create('k', { annotations: BY_REST })
  await expect.poll(() => reasonOf('k')).toBe('Active')
  const disabled = { disabledReason: 'too_many_failures', disabledGeneration: 1 } as const
  await store.patchStatus(TunnelWebhook, at('k'), disabled)
  await expect.poll(async () => (await get('k'))?.spec.enabled).toBe(false)
  await expect.poll(() => reasonOf('k')).toBe('TooManyFailures')
  expect(forgiven).toEqual([])
  await store.mergePatch(TunnelWebhook, at('k'), { spec: { enabled: true } })
  await expect.poll(() => reasonOf('k')).toBe('Active')
  expect(forgiven).toContain(metadata.uid)
  expect((await get('k'))?.status?.disabledReason).toBeUndefined()
})

test('the eleventh webhook is active when an older one is deleted', async () => {
  for (let index = 0; index < 11; index++) await create(`w-${String.fromCharCode(97 + index)}`, { annotations: BY_REST })
  await expect.poll(() => reasonOf('w-k')).toBe('TooManyWebhooks')
  await store.delete(TunnelWebhook, at('w-a'))
  await expect.poll(() => reasonOf('w-k')).toBe('Active')
})
