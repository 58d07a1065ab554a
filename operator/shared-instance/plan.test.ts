import { expect, test } from 'vitest'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import { planInstance, type Observed } from './plan.ts'

const NOW = Date.parse('2026-01-01T00:00:00Z')
const SECRET = { passwordVersion: 1, host: '127.0.0.1', port: 5432, tidy: true }
const LATER = '2026-01-01T00:01:00.000Z'

interface Given {
  readonly spec?: Partial<SharedInstance['spec']>
  readonly status?: SharedInstance['status']
  readonly metadata?: Partial<SharedInstance['metadata']>
}

const claimed: SharedInstance['status'] = { name: 'pr1abc', isEnabled: true, passwordVersion: 1, resetVersion: 0 }

function instance({ spec, status, metadata }: Given = {}): SharedInstance {
  return {
    apiVersion: 'mooring.dev/v1alpha1',
    kind: 'SharedInstance',
    metadata: {
      ...{
        name: 'pr-1',
        namespace: 'acme--prod',
        uid: 'u-1',
        resourceVersion: '1',
        generation: 1,
        creationTimestamp: '2026-01-01T00:00:00Z',
      },
      finalizers: ['mooring.dev/cleanup'],
      ...metadata,
    },
    spec: {
      identifier: 'pr-1',
      region: 'r',
      motor: 'postgresql-15.4.0',
      enabled: true,
      passwordVersion: 1,
      resetVersion: 0,
      extensions: [],
      ...spec,
    },
    ...(status && { status }),
  }
}

function observed(given: Given, rest: Partial<Observed> = {}): Observed {
  return {
    instance: instance(given),
    now: NOW,
    full: undefined,
    region: 'served',
    placement: { found: 'reachable', host: '127.0.0.1', port: 5432 },
    secret: given.status ? SECRET : undefined,
    template: 'none',
    oversize: false,
    missing: false,
    passwordChanged: false,
    extensionDropped: false,
    ...rest,
  }
}

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
  { does: 'does nothing for a settled instance', given: observed({ status: claimed }), actions: [], reason: 'Claimed' },
  {
    does: 'rotates the password: Secret first, then engine, then a login',
    given: observed({ status: claimed, spec: { passwordVersion: 2 } }),
    actions: ['renew-secret', 'password', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'continues a rotation whose Secret was written before a crash',
    given: observed({ status: claimed, spec: { passwordVersion: 2 } }, { secret: { ...SECRET, passwordVersion: 2 } }),
    actions: ['password', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'restores a deleted Secret with a new password',
    given: observed({ status: claimed }, { secret: undefined }),
    actions: ['doubt-password', 'secret', 'password', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'continues with a restored Secret whose password the engine did not get before a crash',
    given: observed({ status: { ...claimed, passwordVersion: undefined } }),
    actions: ['password', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'restores a damaged Secret with a new password',
    given: observed({ status: claimed }, { secret: 'damaged' }),
    actions: ['doubt-password', 'renew-secret', 'password', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'restores the Secret of a disabled instance, which stays disabled',
    given: observed({ status: { ...claimed, isEnabled: false }, spec: { enabled: false } }, { secret: undefined }),
    actions: ['doubt-password', 'secret', 'password'],
    reason: 'Disabled',
  },
  {
    does: 'replaces a damaged Secret in a claim',
    given: observed({}, { secret: 'damaged' }),
    actions: ['renew-secret', 'claim', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'does not change a Secret of another owner',
    given: observed({ status: claimed }, { secret: 'foreign' }),
    actions: [],
    reason: 'SecretTaken',
  },
  {
    does: 'claims nothing while another owner has the Secret',
    given: observed({}, { secret: 'foreign' }),
    actions: [],
    reason: 'SecretTaken',
  },
  {
    does: 'rewrites a Secret in which another value than the password was changed',
    given: observed({ status: claimed }, { secret: { ...SECRET, tidy: false } }),
    actions: ['move-secret'],
    reason: 'Claimed',
  },
  {
    does: 'writes a new address into the Secret',
    given: observed({ status: claimed }, { secret: { ...SECRET, port: 1 } }),
    actions: ['move-secret'],
    reason: 'Claimed',
  },
  {
    does: 'resets',
    given: observed({ status: claimed, spec: { resetVersion: 1 } }),
    actions: ['reset', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'delays a reset whose template is gone, and reports it',
    given: observed({ status: claimed, spec: { resetVersion: 1 } }, { template: 'missing' }),
    actions: [],
    reason: 'TemplateNotFound',
  },
  {
    does: 'delays a reset whose template is in use, and reports it',
    given: observed({ status: claimed, spec: { resetVersion: 1 } }, { template: 'in-use' }),
    actions: [],
    reason: 'TemplateInUse',
  },
  {
    does: 'disables and rotates while a reset waits for its template',
    given: observed({ status: claimed, spec: { resetVersion: 1, passwordVersion: 2, enabled: false } }, { template: 'missing' }),
    actions: ['disable', 'renew-secret', 'password'],
    reason: 'TemplateNotFound',
  },
  {
    does: 'enables and rotates while a reset waits for its template',
    given: observed(
      { status: { ...claimed, isEnabled: false }, spec: { resetVersion: 1, passwordVersion: 2 } },
      { template: 'in-use' },
    ),
    actions: ['renew-secret', 'password', 'enable', 'verify'],
    reason: 'TemplateInUse',
  },
  {
    does: 'keeps the logins of an oversized database disabled while its reset waits',
    given: observed({ status: claimed, spec: { resetVersion: 1 } }, { template: 'missing', oversize: true }),
    actions: ['disable'],
    reason: 'TemplateNotFound',
  },
  {
    does: 'does nothing to a missing database while its reset waits',
    given: observed({ status: claimed, spec: { resetVersion: 1, passwordVersion: 2 } }, { template: 'missing', missing: true }),
    actions: [],
    reason: 'TemplateNotFound',
  },
  {
    does: 'ignores the template without a reset',
    given: observed({ status: claimed }, { template: 'missing' }),
    actions: [],
    reason: 'Claimed',
  },
  {
    does: 'disables before it resets, which may fail',
    given: observed({ status: claimed, spec: { resetVersion: 1, enabled: false } }),
    actions: ['disable', 'reset'],
    reason: 'Disabled',
  },
  { does: 'disables', given: observed({ status: claimed, spec: { enabled: false } }), actions: ['disable'], reason: 'Disabled' },
  {
    does: 'enables',
    given: observed({ status: { ...claimed, isEnabled: false } }),
    actions: ['enable', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'disables the logins of an oversized database',
    given: observed({ status: claimed }, { oversize: true }),
    actions: ['disable'],
    reason: 'SizeExceeded',
  },
  {
    does: 'enables the logins of an oversized database after a reset',
    given: observed({ status: { ...claimed, isEnabled: false }, spec: { resetVersion: 1 } }, { oversize: true }),
    actions: ['reset', 'enable', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'restores a password that the tenant changed',
    given: observed({ status: claimed }, { passwordChanged: true }),
    actions: ['password', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'installs desired extensions',
    given: observed({ status: claimed, spec: { extensions: ['citext', 'hstore'] } }),
    actions: ['extensions'],
    reason: 'Claimed',
  },
  {
    does: 'installs no installed extension',
    given: observed({ status: { ...claimed, extensions: ['hstore', 'citext'] }, spec: { extensions: ['citext', 'hstore'] } }),
    actions: [],
    reason: 'Claimed',
  },
  {
    does: 'installs an extension again that the tenant dropped',
    given: observed(
      { status: { ...claimed, extensions: ['citext'] }, spec: { extensions: ['citext'] } },
      { extensionDropped: true },
    ),
    actions: ['extensions'],
    reason: 'Claimed',
  },
  {
    does: 'installs extensions again after a reset',
    given: observed({ status: { ...claimed, extensions: ['citext'] }, spec: { extensions: ['citext'], resetVersion: 1 } }),
    actions: ['reset', 'extensions', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'reports a missing database instead of creating an empty one',
    given: observed({ status: claimed }, { missing: true }),
    actions: [],
    reason: 'DatabaseMissing',
  },
  {
    does: 'creates a missing database anew in a reset',
    given: observed({ status: claimed, spec: { resetVersion: 1 } }, { missing: true }),
    actions: ['reset', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'reports that its server is gone',
    given: observed({ status: claimed }, { placement: { found: 'removed' } }),
    actions: [],
    reason: 'DatabaseMissing',
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
    given: observed({ status: claimed, metadata: { annotations: { 'mooring.dev/claim-deadline': '2025-12-31T23:59:59Z' } } }),
    actions: [],
    reason: 'Claimed',
  },
  {
    does: 'drops the database before the finalizer is removed',
    given: observed({ status: claimed, metadata: going }),
    actions: ['drop', 'forget-secret', 'release'],
    reason: undefined,
  },
  {
    does: 'keeps the finalizer while the server is unreachable',
    given: observed({ status: claimed, metadata: going }, { placement: { found: 'down' } }),
    actions: [],
    reason: 'CleanupBlocked',
  },
  {
    does: 'removes the finalizer of a forced deletion while the server is unreachable',
    given: observed(
      { status: claimed, metadata: { ...going, annotations: { 'mooring.dev/force-delete': 'true' } } },
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

test.each([
  { does: 'the desired state once it is in force', rest: {}, inForce: { login: true, resetVersion: 1 } },
  {
    does: 'the desired state except the delayed reset',
    rest: { template: 'missing' } as const,
    inForce: { login: true, resetVersion: 0 },
  },
  {
    does: 'no login of an oversized database while the reset waits',
    rest: { template: 'in-use', oversize: true } as const,
    inForce: { login: false, resetVersion: 0 },
  },
  { does: 'no change while the server is down', rest: { placement: { found: 'down' } } as const, inForce: undefined },
])('the plan of a reset puts into the status $does', ({ rest, inForce }) => {
  expect(planInstance(observed({ status: claimed, spec: { resetVersion: 1 } }, rest)).inForce).toEqual(inForce)
})

test('an instance is reconciled again when it expires', () => {
  expect(planInstance(observed({ status: claimed, spec: { expiresAt: LATER } })).requeueAfterMs).toBe(60_000)
})
