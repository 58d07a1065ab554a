import { Buffer } from 'node:buffer'

/** Kinds of fields. {@link PLAIN}, zero: forwarded without a special meaning. */
export const PLAIN = 0
/** Not forwarded: hop-by-hop, or set by the edge alone. */
export const DROP = 1
export const HOST = 2
export const CONNECTION = 3
export const CONTENT_LENGTH = 4
export const TRANSFER_ENCODING = 5
export const UPGRADE = 6
export const EXPECT = 7
export const SET_COOKIE = 8
export const FORWARDED = 9
export const DATE = 10
/** Address of the visitor, which only a trusted balancer may name. */
export const VISITOR_ADDRESS = 11

const UNDERSCORE = 0x5f
const DASH = 0x2d

interface Entry {
  readonly name: Uint8Array
  readonly kind: number
}

/**
 * Lookup of field names without copies, case-insensitive (RFC 9110, section 5.1). A name with underscores instead of dashes is {@link
 * DROP}: CGI and WSGI cannot tell the two apart.
 */
export class NameTable {
  readonly #byLength: (readonly Entry[] | undefined)[] = []

  constructor(kinds: Readonly<Record<string, number>>) {
    for (const [name, kind] of Object.entries(kinds)) {
      this.#byLength[name.length] = [...(this.#byLength[name.length] ?? []), { name: Buffer.from(name, 'latin1'), kind }]
    }
  }

  kindOf(bytes: Uint8Array, start: number, end: number): number {
    const entries = this.#byLength[end - start]
    if (entries === undefined) return PLAIN
    for (const { name, kind } of entries) {
      const match = compare(bytes, start, name)
      if (match === 'same') return kind
      if (match === 'similar') return DROP
    }
    return PLAIN
  }
}

function compare(bytes: Uint8Array, start: number, name: Uint8Array): 'same' | 'similar' | 'other' {
  let similar = false
  for (let index = 0; index < name.length; index++) {
    const expected = name[index]
    let code = bytes[start + index] ?? 0
    if (code >= 0x41 && code <= 0x5a) code |= 0x20
    if (code === expected) continue
    if (code !== UNDERSCORE || expected !== DASH) return 'other'
    similar = true
  }
  return similar ? 'similar' : 'same'
}

const FORWARDED_PREFIX = Buffer.from('x-forwarded-', 'latin1')

/** Whether the name is `X-Forwarded-…`, which only the edge sets. */
export function isForwarded(bytes: Uint8Array, start: number, end: number): boolean {
  return (
    end - start > FORWARDED_PREFIX.length &&
    ((bytes[start] ?? 0) | 0x20) === 0x78 &&
    compare(bytes, start, FORWARDED_PREFIX) !== 'other'
  )
}

const HOP_BY_HOP = {
  'keep-alive': DROP,
  'proxy-connection': DROP,
  te: DROP,
  'proxy-authenticate': DROP,
  'proxy-authorization': DROP,
}
const FRAMING = {
  connection: CONNECTION,
  'content-length': CONTENT_LENGTH,
  'transfer-encoding': TRANSFER_ENCODING,
  upgrade: UPGRADE,
}

/** Field names by which proxies and content delivery networks report the visitor's address; frameworks trust them without a check. */
export const VISITOR_ADDRESS_NAMES: readonly string[] = [
  ...[
    'forwarded',
    'forwarded-for',
    'x-forwarded',
    'x-original-forwarded-for',
    'client-ip',
    'x-client-ip',
    'x-real-ip',
    'x-remote-ip',
  ],
  ...['x-remote-addr', 'x-originating-ip', 'x-cluster-client-ip', 'true-client-ip', 'cf-connecting-ip', 'cf-connecting-ipv6'],
  ...['fastly-client-ip', 'fly-client-ip', 'x-appengine-user-ip', 'x-azure-clientip', 'x-envoy-external-address'],
]

export const REQUEST_NAMES = new NameTable({
  ...Object.fromEntries(VISITOR_ADDRESS_NAMES.map((name) => [name, VISITOR_ADDRESS])),
  ...HOP_BY_HOP,
  ...FRAMING,
  host: HOST,
  expect: EXPECT,
  'x-request-id': DROP,
  'http2-settings': DROP,
})

export const RESPONSE_NAMES = new NameTable({
  ...HOP_BY_HOP,
  ...FRAMING,
  'set-cookie': SET_COOKIE,
  date: DATE,
  'mooring-error': DROP,
  // Both would affect the cookies of other tunnels of the domain.
  'clear-site-data': DROP,
  'set-cookie2': DROP,
})
