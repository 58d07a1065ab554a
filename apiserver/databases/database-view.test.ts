import { expect, test } from 'vitest'
import { annotations } from '../../crds/names.ts'
import { type DatabaseTraits, dedicatedDatabase, runningStatus } from '../../test/builders/dedicated.ts'
import { readyCondition } from '../../test/builders/resources.ts'
import { DatabaseView, databaseView, isConnectable, stateOf } from './database-view.ts'

const going = { deletionTimestamp: '2026-01-03T00:00:00Z' }
const failing = (reason: string, observedGeneration = 1) => [readyCondition('False', reason, observedGeneration)]

interface Case extends DatabaseTraits {
  readonly does: string
  readonly state: string
  readonly code: string | null
  readonly why: string | null
  readonly connectable: boolean
}

const CREATING = 'the server of the database is being created'
const CHANGING = 'the change is being applied'

test.each<Case>([
  { does: 'without a status', state: 'provisioning', code: 'StartingServer', why: CREATING, connectable: false },
  {
    does: 'whose server starts',
    status: { phase: 'provisioning', conditions: failing('CreatingDatabase') },
    ...{ state: 'provisioning', code: 'CreatingDatabase', why: 'because: CreatingDatabase', connectable: false },
  },
  { does: 'that runs', status: runningStatus, state: 'running', code: null, why: null, connectable: true },
  {
    does: 'changed since the last report',
    metadata: { generation: 2 },
    status: runningStatus,
    ...{ state: 'updating', code: 'Updating', why: CHANGING, connectable: true },
  },
  {
    does: 'that is being resized',
    status: { ...runningStatus, phase: 'updating', conditions: failing('Updating') },
    ...{ state: 'updating', code: 'Updating', why: 'because: Updating', connectable: true },
  },
  {
    does: 'changed before it was created',
    metadata: { generation: 2 },
    status: { phase: 'failed', conditions: failing('UnknownPlan') },
    ...{ state: 'provisioning', code: 'Updating', why: CHANGING, connectable: false },
  },
  {
    does: 'that failed',
    status: { ...runningStatus, phase: 'failed', conditions: failing('ServerUnavailable') },
    ...{ state: 'failed', code: 'ServerUnavailable', why: 'because: ServerUnavailable', connectable: false },
  },
  {
    does: 'that is being deleted',
    metadata: going,
    status: runningStatus,
    ...{ state: 'deleting', code: 'Deleting', why: 'the database and its server are being deleted', connectable: false },
  },
  {
    does: 'whose deletion is blocked',
    metadata: going,
    status: { ...runningStatus, phase: 'deleting', conditions: failing('ServerUnavailable') },
    ...{ state: 'deleting', code: 'ServerUnavailable', why: 'because: ServerUnavailable', connectable: false },
  },
])('a database $does is $state', ({ state, code, why, connectable, ...traits }) => {
  const database = dedicatedDatabase(traits)
  expect(stateOf(database)).toEqual({ status: state, statusCode: code, statusReason: why })
  expect(isConnectable(database)).toBe(connectable)
})

test('a view has every documented field, the spec under the names of the API', () => {
  const database = dedicatedDatabase({
    metadata: { annotations: { [annotations.createdBy]: 'local:alice', [annotations.createdAt]: '2026-01-02T03:04:05.678Z' } },
    spec: { firewallRules: [{ cidr: '203.0.113.0/24', description: 'office' }, { cidr: '::1' }], privateNetwork: true },
    status: { ...runningStatus, engineVersion: '15.4' },
  })
  const view = databaseView(database, { region: 'local' })
  expect(DatabaseView.parse(view)).toEqual(view)
  expect(view).toEqual({
    ...{ id: database.metadata.uid, name: 'orders', organization: 'acme', namespace: 'prod' },
    ...{ engine: 'postgresql-15.4.0', region: 'local', plan: 'small' },
    ...{ status: 'running', statusReason: null, statusCode: null },
    firewallRules: [{ cidr: '203.0.113.0/24', description: 'office' }, { cidr: '::1' }],
    ...{ privateNetwork: true, pointInTimeRecovery: null, sshTunnel: null, monitoring: false, restoreWindow: null },
    lastVerifiedRestore: null,
    ...{ engineVersion: '15.4', createdAt: '2026-01-02T03:04:05.678Z', createdBy: 'local:alice', connection: null },
  })
})

test.each([
  { does: 'no list', spec: {}, status: runningStatus, rules: null },
  { does: 'an empty list before its first status', spec: { firewallRules: [] }, status: undefined, rules: [] },
  { does: 'an empty list', spec: { firewallRules: [] }, status: runningStatus, rules: [] },
  {
    does: 'the empty list of a former version',
    spec: { firewallRules: [] },
    status: { ...runningStatus, rulesVersion: undefined },
    rules: null,
  },
])('a database with $does has the rules $rules', ({ spec, status, rules }) => {
  expect(databaseView(dedicatedDatabase({ spec, status }), { region: 'local' }).firewallRules).toEqual(rules)
})
