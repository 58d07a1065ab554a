import { randomBytes } from 'node:crypto'
import { MooringError } from '../../../shared/errors.ts'
import { EngineCode } from '../engine.ts'

/** Kind of a database or role, as encoded in its name. Tenants' names contain no underscore, so that kinds cannot overlap. */
export type NameKind = 'tenant' | 'spare' | 'making' | 'trash' | 'foreign'

const KINDS: readonly (readonly [NameKind, RegExp])[] = [
  ['spare', /^pool_[0-9a-f]{16}$/],
  ['making', /^making_[0-9a-f]{16}$/],
  ['trash', /^trash_[0-9a-f]{16}$/],
  ['tenant', /^(?!postgres$|template[01]$)[a-z][a-z0-9]{0,21}$/],
]

/** Returns the kind of a database or role; `foreign` for a name that Mooring did not assign. */
export function kindOf(name: string): NameKind {
  return KINDS.find(([, pattern]) => pattern.test(name))?.[0] ?? 'foreign'
}

/** Returns a random, unused name of the given kind. */
export function freshName(kind: 'pool' | 'making' | 'trash'): string {
  return `${kind}_${randomBytes(8).toString('hex')}`
}

/**
 * Protects the administrator's own databases and roles.
 * @throws MooringError `engine_failed` when a tenant cannot have the name
 */
export function assertTenantName(name: string): void {
  if (kindOf(name) !== 'tenant') throw new MooringError(EngineCode.failed, `"${name}" is not the name of a tenant`)
}
