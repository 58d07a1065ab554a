import { expect, test } from 'vitest'
import { claimedInstance, observedInstance as observed, SECRET } from '../../test/support/operator/observed-instance.ts'
import { planInstance, type Observed } from './plan.ts'

const [EARLIER, LATER] = [
  { until: '2000-01-01T00:00:00.000Z', count: 1 },
  { until: '2100-01-01T00:00:00.000Z', count: 1 },
]
const NODE = { found: 'reachable', host: '192.0.2.7', port: 5432 } as const

// Changes of an instance that has its database.
test.each<{ does: string; given: Observed; actions: readonly string[]; reason: string | undefined }>([
  { does: 'does nothing for a settled instance', given: observed({ status: claimedInstance }), actions: [], reason: 'Claimed' },
  {
    does: 'disables the login of a suspended instance',
    given: observed({ status: { ...claimedInstance, suspension: LATER } }),
    actions: ['disable'],
    reason: 'Suspended',
  },
  {
    does: 'rotates the password of a suspended instance, and keeps its login disabled',
    given: observed({ status: { ...claimedInstance, isEnabled: false, suspension: LATER }, spec: { passwordVersion: 2 } }),
    actions: ['renew-secret', 'password'],
    reason: 'Suspended',
  },
  {
    does: 'enables the login after a suspension, with its password',
    given: observed({ status: { ...claimedInstance, isEnabled: false, suspension: EARLIER } }),
    actions: ['password', 'enable', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'does nothing for an instance that was suspended once',
    given: observed({ status: { ...claimedInstance, suspension: EARLIER } }),
    actions: [],
    reason: 'Claimed',
  },
  {
    does: 'rotates the password: Secret first, then engine, then a login',
    given: observed({ status: claimedInstance, spec: { passwordVersion: 2 } }),
    actions: ['renew-secret', 'password', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'does nothing for an instance from before passwords had ids',
    given: observed({ status: { ...claimedInstance, passwordId: undefined } }, { secret: { ...SECRET, passwordId: undefined } }),
    actions: [],
    reason: 'Claimed',
  },
  {
    does: 'puts the password of a Secret into the engine that is not the one which the status names',
    given: observed({ status: claimedInstance }, { secret: { ...SECRET, passwordId: 'another' } }),
    actions: ['password', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'continues with a restored Secret of an instance from before passwords had ids',
    given: observed({ status: { ...claimedInstance, passwordId: undefined } }),
    actions: ['password', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'continues a rotation whose Secret was written before a crash',
    given: observed({ status: claimedInstance, spec: { passwordVersion: 2 } }, { secret: { ...SECRET, passwordVersion: 2 } }),
    actions: ['password', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'restores a deleted Secret with a new password',
    given: observed({ status: claimedInstance }, { secret: undefined }),
    actions: ['doubt-password', 'secret', 'password', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'continues with a restored Secret whose password the engine did not get before a crash',
    given: observed({ status: { ...claimedInstance, passwordVersion: undefined, passwordId: undefined } }),
    actions: ['password', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'restores a damaged Secret with a new password',
    given: observed({ status: claimedInstance }, { secret: 'damaged' }),
    actions: ['doubt-password', 'renew-secret', 'password', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'restores the Secret of a disabled instance, which stays disabled',
    given: observed({ status: { ...claimedInstance, isEnabled: false }, spec: { enabled: false } }, { secret: undefined }),
    actions: ['doubt-password', 'secret', 'password'],
    reason: 'Disabled',
  },
  {
    does: 'does not change a Secret of another owner',
    given: observed({ status: claimedInstance }, { secret: 'foreign' }),
    actions: [],
    reason: 'SecretTaken',
  },
  {
    does: 'rewrites a Secret in which another value than the password was changed',
    given: observed({ status: claimedInstance }, { secret: { ...SECRET, tidy: false } }),
    actions: ['move-secret'],
    reason: 'Claimed',
  },
  {
    does: 'writes a new address into the Secret',
    given: observed({ status: claimedInstance }, { secret: { ...SECRET, port: 1 } }),
    actions: ['move-secret'],
    reason: 'Claimed',
  },
  {
    does: 'writes a connection string with TLS into the Secret',
    given: observed({ status: claimedInstance }, { placement: NODE, secret: { ...SECRET, host: NODE.host } }),
    actions: ['move-secret'],
    reason: 'Claimed',
  },
  {
    does: 'writes a connection string without TLS into the Secret',
    given: observed(
      { status: claimedInstance },
      { placement: { ...NODE, tls: 'none' }, secret: { ...SECRET, host: NODE.host, usesTls: true } },
    ),
    actions: ['move-secret'],
    reason: 'Claimed',
  },
  {
    does: 'resets',
    given: observed({ status: claimedInstance, spec: { resetVersion: 1 } }),
    actions: ['reset', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'delays a reset whose template is gone, and reports it',
    given: observed({ status: claimedInstance, spec: { resetVersion: 1 } }, { template: 'missing' }),
    actions: [],
    reason: 'TemplateNotFound',
  },
  {
    does: 'delays a reset whose template is in use, and reports it',
    given: observed({ status: claimedInstance, spec: { resetVersion: 1 } }, { template: 'in-use' }),
    actions: [],
    reason: 'TemplateInUse',
  },
  {
    does: 'delays a reset whose template cannot be copied, and says why',
    given: observed({ status: claimedInstance, spec: { resetVersion: 1 } }, { template: { why: 'the view v opens too much' } }),
    actions: [],
    reason: 'TemplateNotCopyable',
  },
  {
    does: 'disables and rotates while a reset waits for its template',
    given: observed(
      { status: claimedInstance, spec: { resetVersion: 1, passwordVersion: 2, enabled: false } },
      { template: 'missing' },
    ),
    actions: ['disable', 'renew-secret', 'password'],
    reason: 'TemplateNotFound',
  },
  {
    does: 'enables and rotates while a reset waits for its template',
    given: observed(
      { status: { ...claimedInstance, isEnabled: false }, spec: { resetVersion: 1, passwordVersion: 2 } },
      { template: 'in-use' },
    ),
    actions: ['renew-secret', 'password', 'enable', 'verify'],
    reason: 'TemplateInUse',
  },
  {
    does: 'keeps the logins of an oversized database disabled while its reset waits',
    given: observed({ status: claimedInstance, spec: { resetVersion: 1 } }, { template: 'missing', oversize: true }),
    actions: ['disable'],
    reason: 'TemplateNotFound',
  },
  {
    does: 'does nothing to a missing database while its reset waits',
    given: observed(
      { status: claimedInstance, spec: { resetVersion: 1, passwordVersion: 2 } },
      { template: 'missing', missing: true },
    ),
    actions: [],
    reason: 'TemplateNotFound',
  },
  {
    does: 'ignores the template without a reset',
    given: observed({ status: claimedInstance }, { template: 'missing' }),
    actions: [],
    reason: 'Claimed',
  },
  {
    does: 'disables before it resets, which may fail',
    given: observed({ status: claimedInstance, spec: { resetVersion: 1, enabled: false } }),
    actions: ['disable', 'reset'],
    reason: 'Disabled',
  },
  {
    does: 'disables',
    given: observed({ status: claimedInstance, spec: { enabled: false } }),
    actions: ['disable'],
    reason: 'Disabled',
  },
  {
    does: 'enables',
    given: observed({ status: { ...claimedInstance, isEnabled: false } }),
    actions: ['enable', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'disables the logins of an oversized database',
    given: observed({ status: claimedInstance }, { oversize: true }),
    actions: ['disable'],
    reason: 'SizeExceeded',
  },
  {
    does: 'enables the logins of an oversized database after a reset',
    given: observed({ status: { ...claimedInstance, isEnabled: false }, spec: { resetVersion: 1 } }, { oversize: true }),
    actions: ['reset', 'enable', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'restores a password that the tenant changed',
    given: observed({ status: claimedInstance }, { passwordChanged: true }),
    actions: ['password', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'installs desired extensions',
    given: observed({ status: claimedInstance, spec: { extensions: ['citext', 'hstore'] } }),
    actions: ['extensions'],
    reason: 'Claimed',
  },
  {
    does: 'installs no installed extension',
    given: observed({
      status: { ...claimedInstance, extensions: ['hstore', 'citext'] },
      spec: { extensions: ['citext', 'hstore'] },
    }),
    actions: [],
    reason: 'Claimed',
  },
  {
    does: 'looks at the extensions when a request asks for it',
    given: observed({
      status: { ...claimedInstance, extensions: ['citext'], extensionsVersion: 1 },
      spec: { extensions: ['citext'], extensionsVersion: 2 },
    }),
    actions: ['extensions'],
    reason: 'Claimed',
  },
  {
    does: 'looks at the extensions after a reset that may have removed some',
    given: observed({ status: { ...claimedInstance, extensions: ['citext'] }, spec: { resetVersion: 1 } }),
    actions: ['reset', 'extensions', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'installs an extension again that the tenant dropped',
    given: observed(
      { status: { ...claimedInstance, extensions: ['citext'] }, spec: { extensions: ['citext'] } },
      { extensionsChanged: true },
    ),
    actions: ['extensions'],
    reason: 'Claimed',
  },
  {
    does: 'installs extensions again after a reset',
    given: observed({
      status: { ...claimedInstance, extensions: ['citext'] },
      spec: { extensions: ['citext'], resetVersion: 1 },
    }),
    actions: ['reset', 'extensions', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'reports a missing database instead of creating an empty one',
    given: observed({ status: claimedInstance }, { missing: true }),
    actions: [],
    reason: 'DatabaseMissing',
  },
  {
    does: 'creates a missing database anew in a reset',
    given: observed({ status: claimedInstance, spec: { resetVersion: 1 } }, { missing: true }),
    actions: ['reset', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'creates a missing database anew with the password of a new Secret, if that is gone too',
    given: observed({ status: claimedInstance, spec: { resetVersion: 1 } }, { missing: true, secret: undefined }),
    actions: ['doubt-password', 'secret', 'reset', 'verify'],
    reason: 'Claimed',
  },
  {
    does: 'disables the login of a disabled instance that a reset makes anew',
    given: observed(
      { status: { ...claimedInstance, isEnabled: false }, spec: { resetVersion: 1, enabled: false } },
      { missing: true },
    ),
    actions: ['reset', 'disable'],
    reason: 'Disabled',
  },
  {
    does: 'is ready again only after a login, when that was in doubt',
    given: observed({ status: claimedInstance }, { inDoubt: true }),
    actions: ['verify'],
    reason: 'Claimed',
  },
  {
    does: 'leaves a server that is gone for a reset',
    given: observed({ status: claimedInstance, spec: { resetVersion: 1 } }, { placement: { found: 'removed' } }),
    actions: [],
    reason: 'WaitingForServer',
  },
  {
    does: 'waits for a free slot after it left a server that is gone',
    given: observed({ status: claimedInstance, spec: { resetVersion: 1 } }, { placement: { found: 'none' }, missing: true }),
    actions: [],
    reason: 'WaitingForServer',
  },
  {
    does: 'reports that its server is gone',
    given: observed({ status: claimedInstance }, { placement: { found: 'removed' } }),
    actions: [],
    reason: 'DatabaseMissing',
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
  expect(planInstance(observed({ status: claimedInstance, spec: { resetVersion: 1 } }, rest)).inForce).toEqual(inForce)
})
