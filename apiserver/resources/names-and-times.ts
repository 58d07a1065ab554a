import { z } from 'zod'
import type { Kind } from '../../crds/kind.ts'
import { annotations } from '../../crds/names.ts'

export { createdAtOf, withMilliseconds } from '../../shared/created-at.ts'

/** Names of resources in messages, by the plural of their kind. */
const NOUNS: Readonly<Record<string, readonly [one: string, many: string]>> = {
  sharedinstances: ['database', 'databases'],
  dedicateddatabases: ['dedicated database', 'dedicated databases'],
  tunnels: ['tunnel', 'tunnels'],
  tunnelpasswords: ['tunnel password', 'tunnel passwords'],
  tunnelwebhooks: ['webhook', 'webhooks'],
  apitokens: ['API token', 'API tokens'],
  organizations: ['organization', 'organizations'],
  tenantnamespaces: ['namespace', 'namespaces'],
  rolebindings: ['member', 'members'],
  secrets: ['credential', 'credentials'],
}

/** Returns the name of one resource, such as `database`; the kind's own name without an entry. */
export const nounOf = ({ plural, singular }: Pick<Kind, 'plural' | 'singular'>): string => NOUNS[plural]?.[0] ?? singular
/** Returns the name of several resources, such as `databases`, by the plural of a kind. */
export const nounsOf = (plural: string): string => NOUNS[plural]?.[1] ?? plural
/** Returns a count with its noun: `1 database`, `3 databases`. */
export const counted = (count: number, kind: Pick<Kind, 'plural' | 'singular'>): string =>
  `${count} ${count === 1 ? nounOf(kind) : nounsOf(kind.plural)}`

/** Returns the advice to delete so many objects, after {@link counted}. */
export const deleteFirst = (count: number): string => `delete ${count === 1 ? 'it' : 'them'} first`

/** Time in a body, of any zone; stored and shown in UTC. */
export const Time = z.iso.datetime({ offset: true, error: 'must be an RFC 3339 time, e.g. 2026-01-02T03:04:05Z' })

/** Returns the creation time annotation of a new object. */
export function createdNow(now: Date): { readonly [annotations.createdAt]: string } {
  return { [annotations.createdAt]: now.toISOString() }
}
