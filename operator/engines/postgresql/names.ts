import { randomBytes } from 'node:crypto'
import { MooringError } from '../../../shared/errors.ts'
import { EngineCode } from '../engine.ts'

/** What a name in the engine's catalog stands for. Tenants' names hold no underscore, so none can be mistaken for another kind. */
export type NameKind = 'tenant' | 'spare' | 'making' | 'trash' | 'foreign'

const KINDS: readonly (readonly [NameKind, RegExp])[] = [
  ['spare', /^pool_[0-9a-f]{16}$/],
  ['making', /^making_[0-9a-f]{16}$/],
  ['trash', /^trash_[0-9a-f]{16}$/],
  ['tenant', /^(?!postgres$|template[01]$)[a-z][a-z0-9]{0,21}$/],
]

export function kindOf(name: string): NameKind {
  return KINDS.find(([, pattern]) => pattern.test(name))?.[0] ?? 'foreign'
}

/** A name of that kind that nobody has. */
export function freshName(kind: 'pool' | 'making' | 'trash'): string {
  return `${kind}_${randomBytes(8).toString('hex')}`
}

/** @throws MooringError `engine_failed` when the name is not one that a tenant can have: the admin's own things stay out of reach. */
export function assertTenantName(name: string): void {
  if (kindOf(name) !== 'tenant') throw new MooringError(EngineCode.failed, `"${name}" is not the name of a tenant`)
}
