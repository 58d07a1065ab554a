import type { Kind } from '../../crds/kind.ts'

/** What the API calls resources, by the plural of their kind: one of them, and many. */
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

/** `database`; the kind's own name where the API has none. */
export const nounOf = ({ plural, singular }: Pick<Kind, 'plural' | 'singular'>): string => NOUNS[plural]?.[0] ?? singular
/** `databases`, by the plural of a kind. */
export const nounsOf = (plural: string): string => NOUNS[plural]?.[1] ?? plural
/** `1 database`, `3 databases`. */
export const counted = (count: number, kind: Pick<Kind, 'plural' | 'singular'>): string =>
  `${count} ${count === 1 ? nounOf(kind) : nounsOf(kind.plural)}`
