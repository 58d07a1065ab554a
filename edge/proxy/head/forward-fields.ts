import { Buffer } from 'node:buffer'
import { type Fields, STRIDE } from './fields.ts'
import { DATE, DROP, HOST, PLAIN, SET_COOKIE, VISITOR_ADDRESS, NameTable, RESPONSE_NAMES } from './names.ts'
import type { TunnelConfig } from '../../../crds/tunnel-config.ts'

const NONE: readonly string[] = []
const COMMON = new Set(['close', 'keep-alive', 'upgrade'])

/** Returns the names in Connection fields that denote hop-by-hop fields, which are not forwarded (RFC 9110, section 7.6.1). */
export function hopByHopFields(connection: readonly string[]): readonly string[] {
  if (connection.length === 0 || (connection.length === 1 && COMMON.has(connection[0] ?? ''))) return NONE
  return connection.filter((name) => !COMMON.has(name))
}

/** Rules for the fields that are forwarded. */
export interface ForwardingRules {
  /** Names from {@link hopByHopFields}. */
  readonly hops: readonly string[]
  readonly modifications: Modifications
  /** Whether the sender is a trusted balancer, which may name the visitor's address. */
  readonly trusted: boolean
}

/**
 * Whether the field at this offset is forwarded. Host always is, whatever Connection lists. A Set-Cookie counts as forwarded here; its
 * value is scoped separately.
 */
export function isKept({ text, at }: Fields, field: number, { hops, modifications, trusted }: ForwardingRules): boolean {
  const kind = at[field + 4]
  if (kind === HOST) return true
  if (kind === VISITOR_ADDRESS ? !trusted : kind !== PLAIN && kind !== SET_COOKIE && kind !== DATE) return false
  if (hops.length === 0 && modifications.removed === undefined) return true
  return isWanted(text.slice(at[field], at[field + 1]), hops, modifications)
}

function isWanted(name: string, hops: readonly string[], { removed }: Modifications): boolean {
  return removed?.kindOf(Buffer.from(name, 'latin1'), 0, name.length) !== DROP && !hops.includes(name.toLowerCase())
}

/** Returns the end of the line of the field at this offset. */
const lineEnd = ({ text, at }: Fields, field: number): number => at[field + STRIDE] ?? text.length

/** Returns the forwarded lines unchanged; adjacent lines are copied as one run. `from`: start of the first run. */
export function keptLines(fields: Fields, from: number, rules: ForwardingRules): string {
  const { text, at } = fields
  let out = ''
  let run = from
  for (let field = 0; field < at.length; field += STRIDE) {
    if (isKept(fields, field, rules)) continue
    const start = at[field] ?? 0
    if (start > run) out += text.slice(run, start)
    run = lineEnd(fields, field)
  }
  return run === 0 ? text : out + text.slice(run)
}

/** Effect of `liveHeaderModifications` on one direction. */
export interface Modifications {
  /** Fields that are dropped: those removed, and those set to another value. Undefined: none. */
  readonly removed: NameTable | undefined
  /** Fields that are set. */
  readonly added: readonly { readonly name: string; readonly value: string }[]
  /** The set fields as lines, latin1; for a response without its cookies, which depend on the host. */
  readonly lines: string
  /** Values of Set-Cookie in a response. */
  readonly cookies: readonly string[]
}

export interface PreparedModifications {
  readonly request: Modifications
  readonly response: Modifications
}

/** Returns a function that prepares the modifications of a config on first use: once a change instead of once a request. */
export function createModifications(): (config: TunnelConfig) => PreparedModifications {
  const known = new WeakMap<TunnelConfig, PreparedModifications>()
  return (config) => {
    let prepared = known.get(config)
    if (prepared === undefined) {
      prepared = { request: prepare(config, 'request'), response: prepare(config, 'response') }
      known.set(config, prepared)
    }
    return prepared
  }
}

export const isCookie = (name: string): boolean => name.toLowerCase() === 'set-cookie'

/** Whether the field is forbidden in all responses. */
const isForbidden = (name: string): boolean => RESPONSE_NAMES.kindOf(Buffer.from(name, 'latin1'), 0, name.length) === DROP

/** Prepares one direction; the last item of a name wins. A value that is missing removes the field: who sends it could forge it. */
function prepare(config: TunnelConfig, direction: 'request' | 'response'): Modifications {
  const items = new Map<string, { readonly name: string; readonly value: string }>()
  for (const { name, value = '', type } of config.liveHeaderModifications) {
    if (type === direction) items.set(name.toLowerCase(), { name, value })
  }
  const added = [...items.values()].filter(({ name, value }) => value !== '' && (direction === 'request' || !isForbidden(name)))
  return {
    removed: items.size === 0 ? undefined : new NameTable(Object.fromEntries([...items.keys()].map((name) => [name, DROP]))),
    added,
    lines: added
      .filter(({ name }) => direction === 'request' || !isCookie(name))
      .map(({ name, value }) => `${name}: ${value}\r\n`)
      .join(''),
    cookies: direction === 'request' ? [] : added.filter(({ name }) => isCookie(name)).map(({ value }) => value),
  }
}
