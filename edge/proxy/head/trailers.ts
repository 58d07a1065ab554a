import { Buffer } from 'node:buffer'
import { type Fields, readFields, STRIDE } from './fields.ts'
import { hopByHopFields, keptLines, type Modifications } from './forward-fields.ts'
import type { Framing } from './framing.ts'
import { DROP, NameTable, PLAIN, VISITOR_ADDRESS_NAMES } from './names.ts'

/** Maximum bytes of a trailer section, and maximum number of its fields. */
export const MAX_TRAILERS = 8_192
const MAX_TRAILER_FIELDS = 32

/** Fields that a trailer section must not contain: they frame, route or name the visitor (RFC 9110, section 6.5.1). */
const FORBIDDEN = new NameTable(
  Object.fromEntries(
    [
      'connection',
      'content-length',
      'transfer-encoding',
      'host',
      'expect',
      'te',
      'trailer',
      'upgrade',
      'keep-alive',
      'x-request-id',
    ]
      .concat(VISITOR_ADDRESS_NAMES)
      .concat([
        'authorization',
        'cookie',
        'set-cookie',
        'clear-site-data',
        'content-encoding',
        'content-type',
        'content-range',
        'proxy-connection',
        'proxy-authorization',
        'proxy-authenticate',
        'www-authenticate',
        'http2-settings',
        'mooring-error',
      ])
      .map((name) => [name, DROP]),
  ),
)

/** Reads the fields of a trailer section: lines with their CRLF, latin1. Undefined: it is invalid or contains a forbidden field. */
export function readTrailers(lines: string): Fields | undefined {
  if (lines.length > MAX_TRAILERS) return undefined
  const at = readFields(Buffer.from(lines, 'latin1'), 0, FORBIDDEN)
  if (typeof at === 'string' || at.length > MAX_TRAILER_FIELDS * STRIDE) return undefined
  for (let field = 0; field < at.length; field += STRIDE) if (at[field + 4] !== PLAIN) return undefined
  return { text: lines, at }
}

/**
 * Returns the forwarded lines of a trailer section: without hop-by-hop fields that the message's head names (RFC 9110, section 7.6.1),
 * and without fields that the tunnel's settings remove or set. An invalid section yields no lines.
 */
export function keptTrailers(lines: string, { connection }: Framing, modifications: Modifications): string {
  const fields = lines === '' ? undefined : readTrailers(lines)
  return fields === undefined ? '' : keptLines(fields, 0, { hops: hopByHopFields(connection), modifications, trusted: false })
}

/** Returns names and values of a trailer section. */
export function trailerPairs(lines: string): readonly (readonly [string, string])[] {
  const { text, at } = readTrailers(lines) ?? { text: '', at: [] }
  const pairs: (readonly [string, string])[] = []
  for (let field = 0; field < at.length; field += STRIDE) {
    pairs.push([text.slice(at[field], at[field + 1]), text.slice(at[field + 2], at[field + 3])])
  }
  return pairs
}
