import { z } from 'zod'
import { ADDRESS_RULE } from './formats/address-list.ts'
import { isFields } from './formats/fields.ts'
import type { DeepReadonly, Rule } from './kind.ts'
import { isWholeKey } from './formats/ssh-public-key.ts'
import { OBJECT_NAME } from './parts/acme-settings.ts'

/** Credentials that SSH logins may use. */
export const AUTH_MODES = ['key', 'token', 'both'] as const

/** Header name (RFC 9110, section 5.1). */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/
/** Header value (RFC 9110, section 5.5): tab is the only control character. HTTP/2 rejects blanks at the ends (RFC 9113, section 8.2.1). */
const FIELD_VALUE = /^([\x21-\x7e\xa0-\xff]([\t\x20-\x7e\xa0-\xff]*[\x21-\x7e\xa0-\xff])?)?$/
/** Line of a public key of an accepted type (docs/ssh-logins.md): type, key in base64, optional comment. */
const PUBLIC_KEY =
  /^(ssh-ed25519|ecdsa-sha2-nistp(256|384|521)|ssh-rsa|sk-ssh-ed25519@openssh\.com|sk-ecdsa-sha2-nistp256@openssh\.com) [A-Za-z0-9+/]{32,1000}[A-Za-z0-9+/]*={0,3}( [^\r\n]{0,255})?$/
const LABEL = '[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?'
const PORT = '([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])'
const TARGET = new RegExp(`^(${LABEL}([.]${LABEL})*|\\[[0-9A-Fa-f:.]{2,45}\\]):${PORT}$`)
/** Target on the client's own machine: every notation that cannot name another machine. */
const OWN_TARGET = '^(localhost|127([.](25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])){3}|[[]::1]):'
const ENTRY = /^[0-9A-Fa-f.:]{2,45}(\/[0-9]{1,3})?$/

/**
 * Headers that only the edge sets: message framing, hop-by-hop headers (RFC 9110, section 7.6.1), and headers that identify the visitor.
 */
const RESERVED_HEADERS = [
  ...['connection', 'content-length', 'expect', 'host', 'keep-alive', 'proxy-authenticate', 'proxy-authorization'],
  ...['proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'forwarded', 'x-request-id', 'mooring-error'],
]
const RESERVED_PREFIX = 'x-forwarded-'

const Entry = z.string().max(64).regex(ENTRY, ADDRESS_RULE.message).describe('An IP address or a CIDR range.')

const name = z.string().max(64).regex(TOKEN, 'must be a header name').describe('Name of the header.')
const type = z.enum(['request', 'response']).describe('Message that the change applies to.')

/** Value of a header that the edge sets. */
export const HeaderValue = z.string().max(1024).regex(FIELD_VALUE, 'must be printable, on one line, without blanks at its ends')

/** A header that the edge sets or removes, as the REST API takes it. */
export const HeaderModification = z.object({
  name,
  value: HeaderValue.describe('Value that replaces all existing values; an empty value removes the header.'),
  type,
})
export type HeaderModification = DeepReadonly<z.output<typeof HeaderModification>>

/** Key of a Secret in the namespace of the tunnel. */
const SecretKeyRef = z.object({
  name: z.string().max(253).regex(OBJECT_NAME, 'must be the name of an object').describe('Name of the Secret.'),
  key: z
    .string()
    .max(253)
    .regex(/^[-._a-zA-Z0-9]+$/, 'must be a key of a Secret')
    .describe('Key of the Secret.'),
})
export type SecretKeyRef = Readonly<z.output<typeof SecretKeyRef>>

/** A header that the edge sets or removes, as the resource has it. */
const StoredHeaderModification = z.object({
  name,
  value: HeaderValue.optional().describe(
    'Value that replaces all existing values, readable by all who can read the tunnel; an empty value removes the header.',
  ),
  valueFrom: z
    .object({ secretKeyRef: SecretKeyRef.describe('Key of a Secret in the namespace of the tunnel.') })
    .optional()
    .describe('Source of a value that may be secret, in place of `value`. While it is missing, the header is removed.'),
  type,
})
export type StoredHeaderModification = DeepReadonly<z.output<typeof StoredHeaderModification>>

/** Settings of a tunnel (docs/api.md, "Tunnels"). Empty address lists allow every address. */
export const TunnelConfig = z.object({
  httpsOnly: z.boolean().default(false).describe('Whether the edge redirects plain HTTP to HTTPS.'),
  allowCorsPreflight: z.boolean().default(false).describe('Whether the edge itself answers OPTIONS requests.'),
  forwardToOtherHosts: z.boolean().default(false).describe('Whether the target may be on another host than the client.'),
  sshIPWhitelist: z.array(Entry).max(100).default([]).describe('Addresses that may connect over SSH; empty: all.'),
  ingressIPWhitelist: z.array(Entry).max(100).default([]).describe('Addresses that may send requests; empty: all.'),
  liveHeaderModifications: z.array(StoredHeaderModification).max(32).default([]).describe('Headers to set or remove.'),
  authMode: z.enum(AUTH_MODES).default('both').describe('Credential for SSH logins: a key, a temporary password, or either.'),
  authorizedKeys: z
    .array(
      z
        .string()
        .max(4500)
        .regex(
          PUBLIC_KEY,
          'must be one line of a public key as OpenSSH writes it, without the line break, of type ed25519, ecdsa, sk-* or rsa',
        )
        .describe('One line of OpenSSH’s public-key format.'),
    )
    .max(50)
    .default([])
    .describe('Keys that may log in.'),
  target: z
    .string()
    .max(300)
    .regex(TARGET, 'must be host:port, with a port from 1 to 65535')
    .optional()
    .describe(
      'Target of the requests, as host:port. Used only if the client logged in with remote dynamic (SOCKS) forwarding (`ssh -R port`).',
    ),
})
export type TunnelConfig = DeepReadonly<z.output<typeof TunnelConfig>>

const ownTarget = new RegExp(OWN_TARGET)

/** Whether the edge may ask the client to connect to the target: on another host only with forwardToOtherHosts. */
export function isTargetAllowed({ target, forwardToOtherHosts }: Pick<TunnelConfig, 'target' | 'forwardToOtherHosts'>): boolean {
  return target === undefined || forwardToOtherHosts || ownTarget.test(target.toLowerCase())
}

/** Rule over each item of a config list, or over one member of each item, that no schema can express. */
export interface ItemRule {
  readonly list: 'sshIPWhitelist' | 'ingressIPWhitelist' | 'liveHeaderModifications' | 'authorizedKeys'
  readonly member?: 'name'
  /** Message for an invalid item. */
  readonly message: string
  /** Returns a message for one invalid text that says more. */
  readonly messageOf?: (text: string) => string
  readonly holds: (text: string) => boolean
}

/** Item rule that CRDs also have. */
interface ListRule extends ItemRule {
  /** Message for the whole list: a CRD rule cannot name the invalid item. */
  readonly ofList: string
  /** CEL expression over `item`. */
  readonly cel: string
}

/** Returns the indexes of the items that break a rule. Items that are not strings are skipped: the schema rejects them. */
export function brokenItems({ member, holds }: ItemRule, items: readonly unknown[]): readonly number[] {
  return items.flatMap((item, index) => {
    const text = member === undefined ? item : isFields(item) && item[member]
    return typeof text !== 'string' || holds(text) ? [] : [index]
  })
}

const reserved = RESERVED_HEADERS.map((name) => `'${name}'`).join(', ')

function isReserved(name: string): boolean {
  const lower = name.toLowerCase()
  return RESERVED_HEADERS.includes(lower) || lower.startsWith(RESERVED_PREFIX)
}

/** Item rules for stored objects and requests. */
export const ITEM_RULES: readonly ListRule[] = [
  { list: 'sshIPWhitelist', ...ADDRESS_RULE },
  { list: 'ingressIPWhitelist', ...ADDRESS_RULE },
  {
    list: 'liveHeaderModifications',
    member: 'name',
    message:
      'must not be a framing header, a hop-by-hop header, Host, Expect, Forwarded, X-Forwarded-*, X-Request-Id or Mooring-Error: only the edge sets these',
    ofList:
      'must not name framing headers, hop-by-hop headers, Host, Expect, Forwarded, X-Forwarded-*, X-Request-Id or Mooring-Error: only the edge sets these',
    cel: `!(item.name.lowerAscii() in [${reserved}]) && !item.name.lowerAscii().startsWith('${RESERVED_PREFIX}')`,
    holds: (name) => !isReserved(name),
  },
]

/**
 * Item rule of authorizedKeys, which CEL cannot express. The REST API rejects an invalid key. A condition reports an invalid key from
 * kubectl, and the edge ignores it.
 */
export const KEY_RULE: ItemRule = {
  list: 'authorizedKeys',
  message: 'must be a whole key of the type that it names, RSA with 2048 bits or more',
  holds: isWholeKey,
}

type Spec = { readonly config: TunnelConfig }

const overList = (rule: ListRule): Rule => ({
  cel: `self.config.${rule.list}.all(item, ${rule.cel})`,
  message: rule.ofList,
  field: `spec.config.${rule.list}`,
  holds: ({ config }: Spec) => brokenItems(rule, config[rule.list]).length === 0,
})

/** Rule of {@link isTargetAllowed} for CRDs. */
export const TARGET_RULE: Rule = {
  cel: `!has(self.config.target) || self.config.forwardToOtherHosts || self.config.target.lowerAscii().matches('${OWN_TARGET}')`,
  message: 'must be on localhost, unless forwardToOtherHosts is true',
  field: 'spec.config.target',
  holds: ({ config }: Spec) => isTargetAllowed(config),
}

/** Rule of the resource alone: the REST API takes values only. */
const ONE_SOURCE_RULE: Rule = {
  cel: 'self.config.liveHeaderModifications.all(item, has(item.value) != has(item.valueFrom))',
  message: 'each item must have either value or valueFrom',
  field: 'spec.config.liveHeaderModifications',
  holds: ({ config }: Spec) =>
    config.liveHeaderModifications.every((item) => (item.value === undefined) !== (item.valueFrom === undefined)),
}

/** Rules of a config that no schema can express. */
export const CONFIG_RULES: readonly Rule[] = [...ITEM_RULES.map(overList), ONE_SOURCE_RULE, TARGET_RULE]
