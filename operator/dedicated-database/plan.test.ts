import { expect, test } from 'vitest'
import { type DatabaseServer, UPDATE_HELD } from '../../crds/database-server.ts'
import { annotations } from '../../crds/names.ts'
import { dedicatedDatabase, dedicatedServer, plan, runningStatus } from '../../test/builders/dedicated.ts'
import { readyCondition, tunnelEndpoint } from '../../test/builders/resources.ts'
import { type Observed, planDatabase } from './plan.ts'

const NOW = new Date('2026-01-02T03:05:00Z')
const KEPT = { passwordVersion: 1, passwordId: 'an-id', host: '127.0.0.1', port: 5432, usesTls: false, tidy: true }
const NEW: Observed = {
  database: dedicatedDatabase(),
  full: undefined,
  endpoint: undefined,
  region: 'served',
  plan: plan(),
  organization: 'acme',
  namespaceUid: 'u',
  server: undefined,
  isOpen: false,
  secret: undefined,
  passwordChanged: false,
  extensionsChanged: false,
  backups: { isOffered: true, archive: undefined, source: undefined, now: NOW },
}
const FORMER = { databaseId: '9a4e1f6c-6a55-4c6e-9a6b-4f6f1d1c0a99', time: '2026-01-02T03:04:05Z' }
const running = dedicatedDatabase({ status: runningStatus })
const RUNNING: Observed = { ...NEW, database: running, server: dedicatedServer(), isOpen: true, secret: KEPT }
const crashed = dedicatedServer({ status: { conditions: [readyCondition('False', 'Crashed')] } })
const starting = (observedGeneration: number | undefined) =>
  dedicatedServer({ status: { observedGeneration, conditions: [readyCondition('False', 'Starting')] } })
const changed = (spec: Partial<typeof running.spec>) =>
  dedicatedDatabase({ metadata: { generation: 2 }, spec, status: runningStatus })
const grown = { size: { cpu: 1, memoryMiB: 1_024, storageGiB: 20 } }
const held = (reason: string, spec: Partial<DatabaseServer['spec']> = {}) =>
  dedicatedServer({
    spec,
    status: {
      observedGeneration: 0,
      conditions: [readyCondition('True', 'Running'), { ...readyCondition('True', reason), type: UPDATE_HELD }],
    },
  })

interface Row {
  readonly name: string
  readonly seen: Observed
  readonly does?: readonly string[]
  readonly phase: string
  readonly reason: string
}

const CREATION: readonly Row[] = [
  {
    name: 'without a server gets one',
    seen: { ...NEW, database: dedicatedDatabase({ metadata: { finalizers: [] } }) },
    does: ['add-finalizer', 'server'],
    ...{ phase: 'provisioning', reason: 'StartingServer' },
  },
  {
    name: 'that takes a smaller plan before it first runs fails',
    seen: { ...NEW, server: dedicatedServer({ spec: grown, status: { conditions: [readyCondition('False', 'Starting')] } }) },
    ...{ phase: 'failed', reason: 'StorageShrinks' },
  },
  {
    name: 'above its quota gets no finalizer',
    seen: { ...NEW, database: dedicatedDatabase({ metadata: { finalizers: [] } }), full: { taken: 5, max: 5 } },
    ...{ phase: 'failed', reason: 'QuotaExceeded' },
  },
  { name: 'of an unknown region fails', seen: { ...NEW, region: 'unknown' }, phase: 'failed', reason: 'UnknownRegion' },
  {
    name: 'of a motor that its region does not run fails',
    seen: { ...NEW, region: 'motor-missing' },
    ...{ phase: 'failed', reason: 'UnsupportedMotor' },
  },
  { name: 'of an unknown plan fails', seen: { ...NEW, plan: undefined }, phase: 'failed', reason: 'UnknownPlan' },
  {
    name: 'of a motor that its plan does not allow fails',
    seen: { ...NEW, plan: plan({ engines: ['mariadb-10.7.4'] }) },
    ...{ phase: 'failed', reason: 'PlanWithoutMotor' },
  },
  {
    name: 'outside an organization fails',
    seen: { ...NEW, organization: undefined },
    ...{ phase: 'failed', reason: 'NoAccess' },
  },
  {
    name: 'waits for its server',
    seen: { ...NEW, server: starting(undefined) },
    ...{ phase: 'provisioning', reason: 'StartingServer' },
  },
  {
    name: 'waits until its server runs with the present spec',
    seen: { ...NEW, server: dedicatedServer({ status: { observedGeneration: 0 } }), isOpen: true },
    ...{ phase: 'provisioning', reason: 'StartingServer' },
  },
  {
    name: 'reports a server that crashes at its start',
    seen: { ...NEW, server: crashed },
    ...{ phase: 'failed', reason: 'ServerUnavailable' },
  },
  {
    name: 'waits for the admin connection',
    seen: { ...NEW, server: dedicatedServer() },
    ...{ phase: 'provisioning', reason: 'StartingServer' },
  },
  {
    name: 'is created on its server',
    seen: { ...NEW, server: dedicatedServer(), isOpen: true },
    does: ['secret', 'claim', 'admit', 'verify'],
    ...{ phase: 'running', reason: 'Running' },
  },
  {
    name: 'does not touch a Secret of another owner',
    seen: { ...NEW, server: dedicatedServer(), isOpen: true, secret: 'foreign' },
    ...{ phase: 'failed', reason: 'SecretTaken' },
  },
]

const endpoint = tunnelEndpoint({ metadata: { name: 'main' } })
const withSsh = { authMode: 'both', authorizedKeys: [] } as const
const tunnelled = (status = {}) => dedicatedDatabase({ spec: { sshTunnel: withSsh }, status: { ...runningStatus, ...status } })
const assigned = { sshTunnel: { hostname: '0123456789abcdef', endpointRef: { name: 'main' } } }
const admitting = dedicatedServer({ spec: { access: { organization: 'acme', isPrivate: false, edges: 'main' } } })

const SSH: readonly Row[] = [
  {
    name: 'with a new SSH tunnel gets a hostname before its server admits edges',
    seen: { ...RUNNING, database: tunnelled(), endpoint },
    does: ['assign-hostname', 'server'],
    ...{ phase: 'updating', reason: 'Updating' },
  },
  {
    name: 'with an SSH tunnel keeps its hostname',
    seen: { ...RUNNING, database: tunnelled(assigned), endpoint, server: admitting },
    ...{ phase: 'running', reason: 'Running' },
  },
  {
    name: 'runs without its SSH tunnel while the region has no endpoint',
    seen: { ...RUNNING, database: tunnelled() },
    ...{ phase: 'running', reason: 'Running' },
  },
  {
    name: 'whose SSH tunnel was taken away admits no edges',
    seen: { ...RUNNING, database: dedicatedDatabase({ status: { ...runningStatus, ...assigned } }), server: admitting },
    does: ['server'],
    ...{ phase: 'updating', reason: 'Updating' },
  },
]

const LIFE: readonly Row[] = [
  { name: 'that runs needs nothing', seen: RUNNING, phase: 'running', reason: 'Running' },
  {
    name: 'whose Plan was deleted keeps its size',
    seen: { ...RUNNING, plan: undefined },
    ...{ phase: 'running', reason: 'Running' },
  },
  {
    name: 'whose new plan is unknown fails',
    seen: { ...RUNNING, database: changed({ plan: 'large' }), plan: undefined },
    ...{ phase: 'failed', reason: 'UnknownPlan' },
  },
  {
    name: 'with new monitoring adds it to its server',
    seen: { ...RUNNING, database: changed({ monitoring: true }) },
    does: ['server'],
    ...{ phase: 'updating', reason: 'Updating' },
  },
  {
    name: 'whose monitoring was turned off removes it from its server',
    seen: { ...RUNNING, server: dedicatedServer({ spec: { monitoring: { namespace: 'acme--prod', database: 'orders' } } }) },
    does: ['server'],
    ...{ phase: 'updating', reason: 'Updating' },
  },
  {
    name: 'with a larger plan resizes its server',
    seen: { ...RUNNING, database: changed({ plan: 'large' }), plan: plan({ storageGiB: 20 }) },
    does: ['server'],
    ...{ phase: 'updating', reason: 'Updating' },
  },
  {
    name: 'with less storage fails, and changes nothing',
    seen: { ...RUNNING, database: changed({ plan: 'tiny' }), plan: plan({ storageGiB: 5 }) },
    ...{ phase: 'failed', reason: 'StorageShrinks' },
  },
  {
    name: 'that returns to a smaller plan while its volume grows fails',
    seen: { ...RUNNING, database: changed({}), server: held('Updating', grown) },
    ...{ phase: 'failed', reason: 'StorageShrinks' },
  },
  {
    name: 'whose volume cannot grow may return to its former plan',
    seen: { ...RUNNING, database: changed({}), server: held('StorageNotExpandable', grown) },
    does: ['server'],
    ...{ phase: 'updating', reason: 'Updating' },
  },
  {
    name: 'whose volume cannot grow must not fall below its former plan',
    seen: {
      ...RUNNING,
      database: changed({ plan: 'tiny' }),
      plan: plan({ storageGiB: 5 }),
      server: held('StorageNotExpandable', grown),
    },
    ...{ phase: 'failed', reason: 'StorageShrinks' },
  },
  {
    name: 'whose volume cannot grow fails',
    seen: { ...RUNNING, server: held('StorageNotExpandable') },
    ...{ phase: 'failed', reason: 'StorageNotExpandable' },
  },
  {
    name: 'whose server is being replaced is updated',
    seen: { ...RUNNING, server: held('Updating') },
    ...{ phase: 'updating', reason: 'Updating' },
  },
  {
    name: 'on a changed server gets its limits and rules',
    seen: { ...RUNNING, database: changed({}) },
    does: ['claim', 'admit', 'verify'],
    ...{ phase: 'running', reason: 'Running' },
  },
  {
    name: 'with another password version gets a new password',
    seen: { ...RUNNING, database: changed({ passwordVersion: 2 }) },
    does: ['renew-secret', 'password', 'claim', 'admit', 'verify'],
    ...{ phase: 'running', reason: 'Running' },
  },
  {
    name: 'with another extension gets it',
    seen: { ...RUNNING, database: changed({ extensions: ['citext'] }) },
    does: ['claim', 'admit', 'verify', 'extensions'],
    ...{ phase: 'running', reason: 'Running' },
  },
  {
    name: 'whose extensions are to be looked at is looked at',
    seen: { ...RUNNING, database: changed({ extensionsVersion: 1 }) },
    does: ['claim', 'admit', 'verify', 'extensions'],
    ...{ phase: 'running', reason: 'Running' },
  },
  {
    name: 'whose user has dropped an extension gets it again',
    seen: { ...RUNNING, extensionsChanged: true },
    does: ['extensions'],
    ...{ phase: 'running', reason: 'Running' },
  },
  {
    name: 'that was restored is looked at once',
    seen: { ...RUNNING, database: dedicatedDatabase({ spec: { restoreFrom: FORMER }, status: runningStatus }) },
    does: ['extensions'],
    ...{ phase: 'running', reason: 'Running' },
  },
  {
    name: 'with all its extensions does nothing',
    seen: {
      ...RUNNING,
      database: dedicatedDatabase({
        spec: { extensions: ['citext'], restoreFrom: FORMER },
        status: { ...runningStatus, extensions: ['citext', 'hstore'] },
      }),
    },
    ...{ phase: 'running', reason: 'Running' },
  },
  {
    name: 'whose Secret was deleted gets a new password',
    seen: { ...RUNNING, secret: undefined },
    does: ['doubt-password', 'secret', 'password', 'verify'],
    ...{ phase: 'running', reason: 'Running' },
  },
  {
    name: 'whose Secret has another address gets the present one',
    seen: { ...RUNNING, secret: { ...KEPT, port: 1 } },
    does: ['move-secret'],
    ...{ phase: 'running', reason: 'Running' },
  },
  {
    name: 'with a server that was killed fails',
    seen: { ...RUNNING, server: starting(1) },
    ...{ phase: 'failed', reason: 'ServerUnavailable' },
  },
  {
    name: 'with a server that restarts for a change is updated',
    seen: { ...RUNNING, server: starting(0) },
    ...{ phase: 'updating', reason: 'Updating' },
  },
  {
    name: 'whose server was deleted with its data is not created anew',
    seen: { ...RUNNING, server: undefined },
    ...{ phase: 'failed', reason: 'ServerUnavailable' },
  },
]

test.each([...CREATION, ...SSH, ...LIFE])('a database $name', ({ seen, does = [], phase, reason }) => {
  const { actions, state } = planDatabase(seen)
  expect(actions).toEqual(does)
  expect(state).toMatchObject({ phase, decision: { reason, status: phase === 'running' ? 'True' : 'False' } })
})

test('a settled database without an admin connection keeps its status', () => {
  expect(planDatabase({ ...RUNNING, isOpen: false, secret: { ...KEPT, port: 1 } })).toMatchObject({
    actions: [],
    state: undefined,
  })
})

const going = (forced = false) => {
  const notes = forced ? { [annotations.forceDelete]: 'true' } : {}
  return dedicatedDatabase({
    metadata: { deletionTimestamp: '2026-01-02T04:00:00Z', annotations: notes },
    status: runningStatus,
  })
}

test.each([
  { name: 'deletes its server first', server: dedicatedServer(), forced: false, does: ['delete-server'], phase: 'deleting' },
  {
    name: 'is released when its server is gone',
    server: undefined,
    forced: false,
    does: ['record-usage', 'forget-secret', 'release'],
  },
  {
    name: 'with the annotation force-delete is released at once',
    server: dedicatedServer(),
    forced: true,
    does: ['delete-server', 'record-usage', 'forget-secret', 'release'],
  },
])('a deleted database $name', ({ server, forced, does, phase }) => {
  const { actions, state } = planDatabase({ ...RUNNING, database: going(forced), server })
  expect([actions, state?.phase]).toEqual([does, phase])
})
