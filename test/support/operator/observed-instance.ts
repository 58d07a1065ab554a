import type { SharedInstance } from '../../../crds/shared-instance.ts'
import type { Observed } from '../../../operator/shared-instance/plan.ts'
import { type InstanceTraits, sharedInstance } from '../../builders/resources.ts'

/** Current time of {@link observedInstance}. */
const NOW = Date.parse('2026-01-01T00:00:00Z')

/** Id of the password of a claimed instance. */
const PASSWORD_ID = '7c1d3b52-0d3c-4a77-9a31-0f5f0c3f8f11'

/** Observed Secret of a claimed instance. */
export const SECRET = { passwordVersion: 1, passwordId: PASSWORD_ID, host: '127.0.0.1', port: 5432, usesTls: false, tidy: true }

/** Status of an instance that has its database. */
export const claimedInstance: SharedInstance['status'] = {
  ...{ name: 'pr1abc', isEnabled: true, passwordVersion: 1, passwordId: PASSWORD_ID, resetVersion: 0 },
}

/** Returns the observed state of an instance with a finalizer, on a reachable server, apart from the given fields. */
export function observedInstance({ metadata, ...given }: InstanceTraits, rest: Partial<Observed> = {}): Observed {
  return {
    instance: sharedInstance({ ...given, metadata: { finalizers: ['mooring.dev/cleanup'], ...metadata } }),
    now: NOW,
    full: undefined,
    region: 'served',
    placement: { found: 'reachable', host: '127.0.0.1', port: 5432 },
    secret: given.status ? SECRET : undefined,
    template: 'none',
    oversize: false,
    missing: false,
    inDoubt: false,
    passwordChanged: false,
    extensionsChanged: false,
    ...rest,
  }
}
