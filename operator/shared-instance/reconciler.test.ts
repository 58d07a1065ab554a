import { expect, test, vi } from 'vitest'
import { Namespace, Secret } from '../../crds/core.ts'
import { MooringError } from '../../shared/errors.ts'
import { DatabaseServer } from '../../crds/database-server.ts'
import { annotations, FINALIZER } from '../../crds/names.ts'
import { Region } from '../../crds/region.ts'
import { EXTENSIONS_INSTALLED, SharedInstance } from '../../crds/shared-instance.ts'
import { conditionOf, notReady, withCondition } from '../../store/conditions.ts'
import { openTemporaryStore } from '../../test/support/store/temporary-store.ts'
import { keyOf, type Store } from '../../store/port.ts'
import { databaseServer, readyCondition, region, claimedStatus, sharedInstance } from '../../test/builders/resources.ts'
import { settableCache } from '../../test/support/store/caches.ts'
import { podState } from '../kubernetes/pod-state.ts'
import { createReporter } from '../reporter.ts'
import { decodeSecret } from '../secret-data.ts'
import type { Failure } from '../events/events.ts'
import { type EngineAdmin, EngineCode, LoginState } from '../engines/engine.ts'
import { postgresql } from '../engines/postgresql/postgresql.ts'
import { type Admins, createAdmins } from '../server/admins.ts'
import { GRACE_MS } from '../server/reconciler.ts'
import { instanceIndexes, waitingFor } from './indexes.ts'
import { createSlots, createSuspicions } from './slots.ts'
import { createInstanceReconciler } from './reconciler.ts'

const NOW = new Date('2026-01-02T03:05:00Z')

/** Instance without a status, or with the given reason in its status. */
async function make(store: Store, reason: string | undefined): Promise<SharedInstance> {
  const { metadata, spec } = sharedInstance()
  await store.create(Namespace, { metadata: { name: 'acme--prod' } })
  const made = await store.create(SharedInstance, { metadata: { name: metadata.name, namespace: 'acme--prod' }, spec })
  if (reason === undefined) return made
  const conditions = withCondition([], notReady(reason, 'as it was'), { type: 'Ready', generation: 1, now: NOW })
  return store.patchStatus(SharedInstance, made.metadata, { observedGeneration: 1, conditions })
}

interface Surroundings {
  readonly admins?: Admins
  readonly server?: DatabaseServer
  readonly onEvent?: (failure: Failure) => void
  readonly now?: () => Date
}

/** Reconciler that admits all instances, with a server whose status is ready but which has no admin connection. */
function reconcilerOver(
  store: Store,
  all: readonly SharedInstance[],
  { admins = createAdmins(), server = databaseServer(), onEvent = () => undefined, now = () => NOW }: Surroundings = {},
) {
  const instances = settableCache(SharedInstance, instanceIndexes)
  instances.put(...all)
  const servers = settableCache(DatabaseServer)
  servers.put(server)
  const regions = settableCache(Region)
  regions.put(region())
  const caches = { instances: instances.cache, servers: servers.cache, regions: regions.cache }
  return createInstanceReconciler({
    ...{ store, now, ...caches, admins, slots: createSlots(caches), suspicions: createSuspicions() },
    quota: { admit: () => undefined },
    report: createReporter({ store, now }),
    limits: { connections: 1 },
    events: { failure: onEvent },
    ca: () => '',
    caFile: 'ca.crt',
  })
}

test.each([
  { who: 'was above its quota', before: 'QuotaExceeded', after: 'ServerUnavailable' },
  { who: 'has no status', before: undefined, after: undefined },
  { who: 'waited for a server', before: 'WaitingForServer', after: 'WaitingForServer' },
])(
  'an instance that $who reports nothing while the connection to its server may still open, and then $after, and waits for a server',
  async ({ before, after }) => {
    await using place = await openTemporaryStore()
    const { store } = place
    const instance = await make(store, before)
    let passed = 0
    const reconcile = reconcilerOver(store, [instance], { now: () => new Date(NOW.getTime() + passed) })
    expect(await reconcile(keyOf(instance))).toMatchObject({
      result: 'waiting',
      reason: 'WaitingForServer',
      requeueAfterMs: 1_000,
    })
    expect(await store.get(SharedInstance, keyOf(instance))).toEqual(instance)
    passed = GRACE_MS
    await expect(reconcile(keyOf(instance))).rejects.toMatchObject({ code: 'engine_unavailable' })
    const now = await store.get(SharedInstance, keyOf(instance))
    if (!now) expect.fail('it is gone')
    expect(conditionOf(now, 'Ready')?.reason).toBe(after)
    const { region: id, motor } = now.spec
    expect([instanceIndexes.waiting(now), instanceIndexes.overQuota(now)]).toEqual([[waitingFor(id, motor)], []])
  },
)

/** Claimed instance whose spec requests a reset, a new password and no login, and its template. */
async function makeCopy(store: Store): Promise<{ readonly copy: SharedInstance; readonly template: SharedInstance }> {
  await store.create(Namespace, { metadata: { name: 'acme--prod' } })
  const status = { ...claimedStatus, serverRef: { name: databaseServer().metadata.name } }
  const { spec } = sharedInstance()
  const wish = { ...spec, templateRef: { name: 'template' }, resetVersion: 1, passwordVersion: 2, enabled: false }
  const at = (name: string) => ({ namespace: 'acme--prod', name, finalizers: [FINALIZER] })
  const template = await store.create(SharedInstance, { metadata: at('template'), spec })
  const copy = await store.create(SharedInstance, { metadata: at('copy'), spec: wish })
  return {
    copy: await store.patchStatus(SharedInstance, copy.metadata, status),
    template: await store.patchStatus(SharedInstance, template.metadata, { ...status, name: 'template' }),
  }
}

test.each([
  { why: 'is in use', code: EngineCode.templateInUse, reason: 'TemplateInUse', isKnown: true },
  { why: 'is missing on its server', code: EngineCode.templateMissing, reason: 'TemplateNotFound', isKnown: true },
  { why: 'is not copied', code: EngineCode.templateNotCopyable, reason: 'TemplateNotCopyable', isKnown: true },
  { why: 'is gone', code: undefined, reason: 'TemplateNotFound', isKnown: false },
])('while a template $why, a reset waits and delays nothing else', async ({ code, reason, isKnown }) => {
  await using place = await openTemporaryStore()
  const { store } = place
  const { copy, template } = await makeCopy(store)
  const done = vi.fn(() => Promise.resolve())
  const reset = vi.fn(() => Promise.reject(new MooringError(code ?? EngineCode.failed, 'it cannot be copied')))
  const find = () => Promise.resolve({ database: true, login: LoginState.enabled })
  const admin = { find, reset, disableLogin: done, setPassword: done } as unknown as EngineAdmin
  const admins = { ...createAdmins(), get: () => ({ engine: postgresql, admin }) }
  const reconcile = reconcilerOver(store, isKnown ? [copy, template] : [copy], { admins })
  expect(await reconcile(keyOf(copy))).toMatchObject({ result: 'waiting', reason, requeueAfterMs: expect.any(Number) as number })
  const now = await store.get(SharedInstance, keyOf(copy))
  expect(now?.status).toMatchObject({ isEnabled: false, passwordVersion: 2, resetVersion: 0 })
  expect(conditionOf(now ?? {}, 'Ready')).toMatchObject({ status: 'False', reason })
  expect(reset).toHaveBeenCalledTimes(isKnown ? 1 : 0)
  expect(done).toHaveBeenCalled()
})

test.each([
  { state: 'has no binaries', reason: 'MotorUnavailable', says: 'the database server cannot run: because: MotorUnavailable' },
  { state: 'crashed', reason: 'Crashed', says: 'the database server cannot run: it failed and is being started again' },
  { state: 'is starting', reason: 'Starting', says: 'the database server does not answer' },
])('an instance whose server $state reports that, and nothing of its log, also while it is started again', async (row) => {
  await using place = await openTemporaryStore()
  const { store } = place
  const { copy } = await makeCopy(store)
  const reported = async (now: SharedInstance, reason: string) => {
    const server = databaseServer({ status: { conditions: [readyCondition('False', reason)] } })
    await reconcilerOver(store, [now], { server })(keyOf(now))
    return store.get(SharedInstance, keyOf(now))
  }
  const before = await reported(copy, row.reason)
  const shown = conditionOf(before ?? {}, 'Ready')
  expect(shown).toMatchObject({
    status: 'False',
    reason: 'ServerUnavailable',
    message: expect.stringContaining(row.says) as string,
  })
  if (row.reason === 'Crashed') expect(shown?.message).not.toContain('because')
  expect(await reported(before ?? copy, 'Starting')).toEqual(before)
})

test('an instance whose server lacks its image does not show the error of the registry', async () => {
  await using place = await openTemporaryStore()
  const { store } = place
  const { copy } = await makeCopy(store)
  const pod = {
    state: { waiting: { reason: 'ErrImagePull', message: 'GET https://token?account=robot:\n401' } },
    image: 'db:8',
    lastState: {},
  }
  const state = podState(
    { metadata: {}, status: { containerStatuses: [{ ...pod, name: 'mysql', ready: false }] } } as never,
    () => true,
  )
  const message = 'message' in state ? state.message : ''
  expect(message).toContain('robot')
  const server = databaseServer({ status: { conditions: [{ ...readyCondition('False', 'MotorUnavailable'), message }] } })
  const shown = async (about: SharedInstance, on = server) => {
    const instance = (await store.get(SharedInstance, keyOf(about))) ?? expect.fail('it is gone')
    await reconcilerOver(store, [instance], { server: on })(keyOf(about))
    return conditionOf((await store.get(SharedInstance, keyOf(about))) ?? {}, 'Ready')?.message
  }
  expect(await shown(copy)).toBe('the database server cannot run: the image db:8 cannot be pulled')

  const waiting = await store.create(SharedInstance, {
    metadata: { name: 'new', namespace: 'acme--prod' },
    spec: sharedInstance().spec,
  })
  const because = 'no database server has a free slot: the image db:8 cannot be pulled'
  expect(await shown(waiting)).toBe(because)
  const starting = databaseServer({ status: { conditions: [readyCondition('False', 'Starting')] } })
  expect(await shown(waiting, starting)).toBe(because)
})

test('an instance is not ready, though its login works, until a refused extension is taken out of the spec', async () => {
  await using place = await openTemporaryStore()
  const { store } = place
  const key = keyOf((await makeCopy(store)).template)
  const done = () => Promise.resolve()
  const message = 'the schema public has an object citext'
  const conflict = { name: 'citext', reason: 'conflict', message }
  const installExtensions = () => Promise.resolve({ installed: [], refused: [conflict] })
  // Without `find`: a database that lacks an extension is not in doubt.
  const admin = { setPassword: done, verify: done, installExtensions } as unknown as EngineAdmin
  const admins = { ...createAdmins(), get: () => ({ engine: postgresql, admin }) }
  const reconcile = async () => {
    const instance = (await store.get(SharedInstance, key)) ?? expect.fail('it is gone')
    const outcome = await reconcilerOver(store, [instance], { admins })(key)
    const now = (await store.get(SharedInstance, key)) ?? {}
    return { outcome, ready: conditionOf(now, 'Ready'), alarm: conditionOf(now, EXTENSIONS_INSTALLED) }
  }
  await store.mergePatch(SharedInstance, key, { spec: { extensions: ['citext'] } })
  const refused = { status: 'False', reason: 'ExtensionConflict', message }
  for (let round = 1; round <= 2; round++) {
    const { ready, alarm, outcome } = await reconcile()
    expect([ready, alarm]).toMatchObject([refused, refused])
    expect(outcome).toMatchObject({ result: 'settled' })
  }
  await store.mergePatch(SharedInstance, key, { spec: { extensions: [] } })
  expect(await reconcile()).toMatchObject({ ready: { status: 'True', reason: 'Claimed' }, alarm: undefined })
})

test('the status names a restored password only when the engine has it', async () => {
  await using place = await openTemporaryStore()
  const { store } = place
  const { template: made } = await makeCopy(store)
  const before = await store.patchStatus(SharedInstance, made.metadata, { passwordId: '7c1d3b52-0d3c-4a77-9a31-0f5f0c3f8f11' })
  const passwords: string[] = []
  const setPassword = vi.fn(({ password }: { readonly password: string }) => Promise.resolve(void passwords.push(password)))
  setPassword.mockRejectedValueOnce(new MooringError(EngineCode.unavailable, 'the server is gone'))
  const admin = { setPassword, verify: () => Promise.resolve() } as unknown as EngineAdmin
  const admins = { ...createAdmins(), get: () => ({ engine: postgresql, admin }) }

  const key = keyOf(before)
  const read = async () => ({
    instance: (await store.get(SharedInstance, key)) ?? expect.fail('it is gone'),
    secret: await store.get(Secret, { ...key, name: `${key.name}-credentials` }),
  })
  const events: Failure[] = []
  const onEvent = (failure: Failure) => void events.push(failure)
  await expect(reconcilerOver(store, [before], { admins, onEvent })(key)).rejects.toMatchObject({ code: 'engine_unavailable' })
  const between = await read()
  expect(between.secret?.metadata.annotations).toHaveProperty([annotations.passwordId])
  expect(between.instance.status).not.toHaveProperty('passwordVersion')
  expect(between.instance.status).not.toHaveProperty('passwordId')

  await reconcilerOver(store, [between.instance], { admins, onEvent })(key)
  const { instance, secret } = await read()
  expect(secret).toEqual(between.secret)
  expect(events).toMatchObject([
    { reason: 'PasswordReplaced', note: expect.stringContaining('the Secret template-credentials was deleted') as string },
  ])
  expect(passwords).toEqual([decodeSecret(secret?.data ?? {}, 'password')])
  expect(secret?.metadata.annotations).toEqual({
    [annotations.passwordVersion]: String(instance.status?.passwordVersion),
    [annotations.passwordId]: instance.status?.passwordId,
  })
})
