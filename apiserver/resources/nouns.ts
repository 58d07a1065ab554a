import type { Kind } from '../../crds/kind.ts'

/** Names of resources in messages, by the plural of their kind. */
const NOUNS: Readonly<Record<string, readonly [one: string, many: string]>> = {
  sharedinstances: ['database', 'databases'],
  tunnels: ['tunnel', 'tunnels'],
  tunnelpasswords: ['tunnel password', 'tunnel passwords'],
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
