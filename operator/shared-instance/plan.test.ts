import { expect, test } from 'vitest'
import { claimedInstance, observedInstance as observed } from '../../test/support/operator/observed-instance.ts'
import { planInstance, type Observed } from './plan.ts'

const LATER = '2026-01-01T00:01:00.000Z'
const going = { deletionTimestamp: '2026-01-01T00:00:00Z' }

test.each<{ does: string; given: Observed; actions: readonly string[]; reason: string | undefined }>([
  {
    does: 'claims a new instance and verifies its login',
    given: observed({}),
    actions: ['secret', 'claim', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'adds the finalizer first to an instance without one',
    given: observed({ metadata: { finalizers: [] } }),
    actions: ['add-finalizer', 'secret', 'claim', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'claims a disabled instance without a login',
    given: observed({ spec: { enabled: false } }),
    actions: ['secret', 'claim', 'disable'],
    reason: 'Disabled',
  },
  {
    does: 'waits while its namespace is full, without so much as a finalizer',
    given: observed({ metadata: { finalizers: [] } }, { full: { taken: 50, max: 50 } }),
    actions: [],
    reason: 'QuotaExceeded',
  },
  {
    does: 'gets nothing in a Namespace that is not a tenant’s',
    given: observed({ metadata: { finalizers: [] } }, { refused: 'it has no label' }),
    actions: [],
    reason: 'NoAccess',
  },
  {
    does: 'expires while its namespace is full',
    given: observed({ spec: { expiresAt: '2026-01-01T00:00:00.000Z' } }, { full: { taken: 50, max: 50 } }),
    actions: ['expire'],
    reason: undefined,
  },
  {
    does: 'waits for a server with a free slot',
    given: observed({}, { placement: { found: 'none' } }),
    actions: [],
    reason: 'WaitingForServer',
  },
  {
    does: 'waits for a server that is starting',
    given: observed({}, { placement: { found: 'none', down: {} } }),
    actions: [],
    reason: 'WaitingForServer',
  },
  {
    does: 'waits for a server that cannot run',
    given: observed({}, { placement: { found: 'none', down: { why: 'its image is missing' } } }),
    actions: [],
    reason: 'ServerUnavailable',
  },
  {
    does: 'waits for a server that is down',
    given: observed({}, { placement: { found: 'down' } }),
    actions: [],
    reason: 'ServerUnavailable',
  },
  { does: 'rejects an unknown region', given: observed({}, { region: 'unknown' }), actions: [], reason: 'UnknownRegion' },
  {
    does: 'rejects a motor that the region does not run',
    given: observed({}, { region: 'motor-missing' }),
    actions: [],
    reason: 'UnsupportedMotor',
  },
  {
    does: 'waits for a missing template',
    given: observed({}, { template: 'missing' }),
    actions: [],
    reason: 'TemplateNotFound',
  },
  {
    does: 'replaces a damaged Secret in a claim',
    given: observed({}, { secret: 'damaged' }),
    actions: ['renew-secret', 'claim', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'claims nothing while another owner has the Secret',
    given: observed({}, { secret: 'foreign' }),
    actions: [],
    reason: 'SecretTaken',
  },
  {
    does: 'deletes itself when it has expired',
    given: observed({ spec: { expiresAt: '2025-12-31T23:59:59Z' } }),
    actions: ['expire'],
    reason: undefined,
  },
  {
    does: 'gives up a claim past its deadline',
    given: observed({ metadata: { annotations: { 'mooring.dev/claim-deadline': '2025-12-31T23:59:59Z' } } }),
    actions: ['expire'],
    reason: undefined,
  },
  {
    does: 'ignores the deadline once it is claimed',
    given: observed({
      status: claimedInstance,
      metadata: { annotations: { 'mooring.dev/claim-deadline': '2025-12-31T23:59:59Z' } },
    }),
    actions: [],
    reason: 'Claimed',
  },
  {
    does: 'drops the database before the finalizer is removed',
    given: observed({ status: claimedInstance, metadata: going }),
    actions: ['drop', 'forget-secret', 'release'],
    reason: undefined,
  },
  {
    does: 'keeps the finalizer while the server is unreachable',
    given: observed({ status: claimedInstance, metadata: going }, { placement: { found: 'down' } }),
    actions: [],
    reason: 'CleanupBlocked',
  },
  {
    does: 'removes the finalizer of a forced deletion while the server is unreachable',
    given: observed(
      { status: claimedInstance, metadata: { ...going, annotations: { 'mooring.dev/force-delete': 'true' } } },
      { placement: { found: 'down' } },
    ),
    actions: ['forget-secret', 'release'],
    reason: undefined,
  },
  {
    does: 'removes the finalizer when there is nothing to drop',
    given: observed({ metadata: going }, { placement: { found: 'none' } }),
    actions: ['forget-secret', 'release'],
    reason: undefined,
  },
  {
    does: 'does nothing without its finalizer',
    given: observed({ metadata: { ...going, finalizers: [] } }),
    actions: [],
    reason: undefined,
  },
])('$does', ({ given, actions, reason }) => {
  const plan = planInstance(given)
  expect(plan.actions).toEqual(actions)
  expect(plan.decision?.reason).toBe(reason)
})

test('an instance is reconciled again when it expires', () => {
  expect(planInstance(observed({ status: claimedInstance, spec: { expiresAt: LATER } })).requeueAfterMs).toBe(60_000)
})
