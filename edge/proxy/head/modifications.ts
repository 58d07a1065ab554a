import { Buffer } from 'node:buffer'
import type { TunnelConfig } from '../../../crds/tunnel-config.ts'
import { DROP, NameTable, RESPONSE_NAMES } from './names.ts'

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

/** Prepares one direction; the last item of a name wins. */
function prepare(config: TunnelConfig, direction: 'request' | 'response'): Modifications {
  const items = new Map<string, { readonly name: string; readonly value: string }>()
  for (const { name, value, type } of config.liveHeaderModifications) {
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
