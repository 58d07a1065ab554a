import { expect, test } from 'vitest'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import { planInstance, type World } from './plan.ts'

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

function world(given: Given, rest: Partial<World> = {}): World {
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

test.each<{ does: string; given: World; actions: readonly string[]; reason: string | undefined }>([
  {
    does: 'claims a new instance and verifies its login',
    given: world({}),
    actions: ['secret', 'claim', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'adds its finalizer before anything else to an instance that came without',
    given: world({ metadata: { finalizers: [] } }),
    actions: ['add-finalizer', 'secret', 'claim', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'claims a disabled one without a login',
    given: world({ spec: { enabled: false } }),
    actions: ['secret', 'claim', 'disable'],
    reason: 'Disabled',
  },
  {
    does: 'waits while its namespace is full, without so much as a finalizer',
    given: world({ metadata: { finalizers: [] } }, { full: { taken: 50, max: 50 } }),
    actions: [],
    reason: 'QuotaExceeded',
  },
  {
    does: 'expires while its namespace is full',
    given: world({ spec: { expiresAt: '2026-01-01T00:00:00.000Z' } }, { full: { taken: 50, max: 50 } }),
    actions: ['expire'],
    reason: undefined,
  },
  {
    does: 'waits for a server with room',
    given: world({}, { placement: { found: 'none' } }),
    actions: [],
    reason: 'WaitingForServer',
  },
  {
    does: 'waits for a server that is down',
    given: world({}, { placement: { found: 'down' } }),
    actions: [],
    reason: 'ServerUnavailable',
  },
  { does: 'refuses an unknown region', given: world({}, { region: 'unknown' }), actions: [], reason: 'UnknownRegion' },
  {
    does: 'refuses a motor that the region does not run',
    given: world({}, { region: 'motor-missing' }),
    actions: [],
    reason: 'UnsupportedMotor',
  },
  {
    does: 'refuses a template that is not there',
    given: world({}, { template: 'missing' }),
    actions: [],
    reason: 'TemplateNotFound',
  },
  { does: 'leaves a settled one alone', given: world({ status: claimed }), actions: [], reason: 'Claimed' },
  {
    does: 'rotates the password: Secret first, then engine, then a login',
    given: world({ status: claimed, spec: { passwordVersion: 2 } }),
    actions: ['renew-secret', 'password', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'goes on with a rotation whose Secret was written before a crash',
    given: world({ status: claimed, spec: { passwordVersion: 2 } }, { secret: { ...SECRET, passwordVersion: 2 } }),
    actions: ['password', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'restores a deleted Secret with a new password',
    given: world({ status: claimed }, { secret: undefined }),
    actions: ['doubt-password', 'secret', 'password', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'goes on with a restored Secret whose password the engine did not get before a crash',
    given: world({ status: { ...claimed, passwordVersion: undefined } }),
    actions: ['password', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'restores a damaged Secret with a new password',
    given: world({ status: claimed }, { secret: 'damaged' }),
    actions: ['doubt-password', 'renew-secret', 'password', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'restores the Secret of a disabled instance, which stays disabled',
    given: world({ status: { ...claimed, isEnabled: false }, spec: { enabled: false } }, { secret: undefined }),
    actions: ['doubt-password', 'secret', 'password'],
    reason: 'Disabled',
  },
  {
    does: 'claims with a damaged Secret as with none',
    given: world({}, { secret: 'damaged' }),
    actions: ['renew-secret', 'claim', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'keeps its hands off a Secret that is somebody else’s',
    given: world({ status: claimed }, { secret: 'foreign' }),
    actions: [],
    reason: 'SecretTaken',
  },
  { does: 'claims nothing under such a Secret', given: world({}, { secret: 'foreign' }), actions: [], reason: 'SecretTaken' },
  {
    does: 'writes a Secret anew in which something beside the password was changed',
    given: world({ status: claimed }, { secret: { ...SECRET, tidy: false } }),
    actions: ['move-secret'],
    reason: 'Claimed',
  },
  {
    does: 'writes a new address into the Secret',
    given: world({ status: claimed }, { secret: { ...SECRET, port: 1 } }),
    actions: ['move-secret'],
    reason: 'Claimed',
  },
  {
    does: 'resets',
    given: world({ status: claimed, spec: { resetVersion: 1 } }),
    actions: ['reset', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'waits with a reset whose template is gone, and says so',
    given: world({ status: claimed, spec: { resetVersion: 1 } }, { template: 'missing' }),
    actions: [],
    reason: 'TemplateNotFound',
  },
  {
    does: 'waits with a reset whose template is in use, and says so',
    given: world({ status: claimed, spec: { resetVersion: 1 } }, { template: 'in-use' }),
    actions: [],
    reason: 'TemplateInUse',
  },
  {
    does: 'disables and rotates while a reset waits for its template',
    given: world({ status: claimed, spec: { resetVersion: 1, passwordVersion: 2, enabled: false } }, { template: 'missing' }),
    actions: ['disable', 'renew-secret', 'password'],
    reason: 'TemplateNotFound',
  },
  {
    does: 'enables and rotates while a reset waits for its template',
    given: world(
      { status: { ...claimed, isEnabled: false }, spec: { resetVersion: 1, passwordVersion: 2 } },
      { template: 'in-use' },
    ),
    actions: ['renew-secret', 'password', 'enable', 'verify'],
    reason: 'TemplateInUse',
  },
  {
    does: 'keeps a database past its size closed while its reset waits',
    given: world({ status: claimed, spec: { resetVersion: 1 } }, { template: 'missing', oversize: true }),
    actions: ['disable'],
    reason: 'TemplateNotFound',
  },
  {
    does: 'touches no lost database while its reset waits',
    given: world({ status: claimed, spec: { resetVersion: 1, passwordVersion: 2 } }, { template: 'missing', missing: true }),
    actions: [],
    reason: 'TemplateNotFound',
  },
  {
    does: 'does not care about the template without a reset',
    given: world({ status: claimed }, { template: 'missing' }),
    actions: [],
    reason: 'Claimed',
  },
  {
    does: 'disables before it resets, which may fail',
    given: world({ status: claimed, spec: { resetVersion: 1, enabled: false } }),
    actions: ['disable', 'reset'],
    reason: 'Disabled',
  },
  { does: 'disables', given: world({ status: claimed, spec: { enabled: false } }), actions: ['disable'], reason: 'Disabled' },
  {
    does: 'enables',
    given: world({ status: { ...claimed, isEnabled: false } }),
    actions: ['enable', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'ends the logins of a database past its size',
    given: world({ status: claimed }, { oversize: true }),
    actions: ['disable'],
    reason: 'SizeExceeded',
  },
  {
    does: 'lets a database past its size in again after a reset',
    given: world({ status: { ...claimed, isEnabled: false }, spec: { resetVersion: 1 } }, { oversize: true }),
    actions: ['reset', 'enable', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'puts back a password that the tenant changed by itself',
    given: world({ status: claimed }, { passwordChanged: true }),
    actions: ['password', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'installs extensions that are asked for',
    given: world({ status: claimed, spec: { extensions: ['citext', 'hstore'] } }),
    actions: ['extensions'],
    reason: 'Claimed',
  },
  {
    does: 'installs no extension that is there',
    given: world({ status: { ...claimed, extensions: ['hstore', 'citext'] }, spec: { extensions: ['citext', 'hstore'] } }),
    actions: [],
    reason: 'Claimed',
  },
  {
    does: 'installs an extension again that the tenant dropped',
    given: world(
      { status: { ...claimed, extensions: ['citext'] }, spec: { extensions: ['citext'] } },
      { extensionDropped: true },
    ),
    actions: ['extensions'],
    reason: 'Claimed',
  },
  {
    does: 'installs extensions again after a reset',
    given: world({ status: { ...claimed, extensions: ['citext'] }, spec: { extensions: ['citext'], resetVersion: 1 } }),
    actions: ['reset', 'extensions', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'shows a lost database instead of making an empty one',
    given: world({ status: claimed }, { missing: true }),
    actions: [],
    reason: 'DatabaseMissing',
  },
  {
    does: 'makes a lost database anew when a reset asks for it',
    given: world({ status: claimed, spec: { resetVersion: 1 } }, { missing: true }),
    actions: ['reset', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'shows that its server is gone',
    given: world({ status: claimed }, { placement: { found: 'removed' } }),
    actions: [],
    reason: 'DatabaseMissing',
  },
  {
    does: 'deletes itself when it has expired',
    given: world({ spec: { expiresAt: '2025-12-31T23:59:59Z' } }),
    actions: ['expire'],
    reason: undefined,
  },
  {
    does: 'gives up a claim past its deadline',
    given: world({ metadata: { annotations: { 'mooring.dev/claim-deadline': '2025-12-31T23:59:59Z' } } }),
    actions: ['expire'],
    reason: undefined,
  },
  {
    does: 'heeds no deadline once it is claimed',
    given: world({ status: claimed, metadata: { annotations: { 'mooring.dev/claim-deadline': '2025-12-31T23:59:59Z' } } }),
    actions: [],
    reason: 'Claimed',
  },
  {
    does: 'drops the database before it lets go',
    given: world({ status: claimed, metadata: going }),
    actions: ['drop', 'forget-secret', 'release'],
    reason: undefined,
  },
  {
    does: 'holds on while the server cannot be reached',
    given: world({ status: claimed, metadata: going }, { placement: { found: 'down' } }),
    actions: [],
    reason: 'CleanupBlocked',
  },
  {
    does: 'lets go by force while the server cannot be reached',
    given: world(
      { status: claimed, metadata: { ...going, annotations: { 'mooring.dev/force-delete': 'true' } } },
      { placement: { found: 'down' } },
    ),
    actions: ['forget-secret', 'release'],
    reason: undefined,
  },
  {
    does: 'lets go when there is nothing to drop',
    given: world({ metadata: going }, { placement: { found: 'none' } }),
    actions: ['forget-secret', 'release'],
    reason: undefined,
  },
  {
    does: 'does nothing for one it has let go',
    given: world({ metadata: { ...going, finalizers: [] } }),
    actions: [],
    reason: undefined,
  },
])('$does', ({ given, actions, reason }) => {
  const plan = planInstance(given)
  expect(plan.actions).toEqual(actions)
  expect(plan.verdict?.reason).toBe(reason)
})

test.each([
  { does: 'all that is wished once it is carried out', rest: {}, inForce: { login: true, resetVersion: 1 } },
  { does: 'all but the reset that waits', rest: { template: 'missing' } as const, inForce: { login: true, resetVersion: 0 } },
  {
    does: 'no login past the size while the reset waits',
    rest: { template: 'in-use', oversize: true } as const,
    inForce: { login: false, resetVersion: 0 },
  },
  { does: 'nothing new where the server is down', rest: { placement: { found: 'down' } } as const, inForce: undefined },
])('a status says of a claimed one that is to be reset $does', ({ rest, inForce }) => {
  expect(planInstance(world({ status: claimed, spec: { resetVersion: 1 } }, rest)).inForce).toEqual(inForce)
})

test('one that will expire is looked at again at that moment', () => {
  expect(planInstance(world({ status: claimed, spec: { expiresAt: LATER } })).requeueAfterMs).toBe(60_000)
})
