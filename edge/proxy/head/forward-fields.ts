import { Buffer } from 'node:buffer'
import { type Fields, STRIDE } from './fields.ts'
import type { Modifications } from './modifications.ts'
import { DATE, DROP, HOST, PLAIN, SET_COOKIE, VISITOR_ADDRESS } from './names.ts'

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
export const lineEnd = ({ text, at }: Fields, field: number): number => at[field + STRIDE] ?? text.length

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
