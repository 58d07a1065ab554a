import { z } from 'zod'
import { ADDRESS_RULE } from './formats/address-list.ts'
import { isFields } from './formats/fields.ts'
import type { DeepReadonly, Rule } from './kind.ts'
import { isWholeKey } from './formats/ssh-public-key.ts'

/** Which credentials the SSH side takes (contract, "Tunnel": authentication mode). */
export const AUTH_MODES = ['key', 'token', 'both'] as const

/** Header names as RFC 9110, section 5.1 has them. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/
/** RFC 9110, section 5.5: no control characters but the tab; HTTP/2 refuses blanks at the ends (RFC 9113, section 8.2.1). */
const FIELD_VALUE = /^([\x21-\x7e\xa0-\xff]([\t\x20-\x7e\xa0-\xff]*[\x21-\x7e\xa0-\xff])?)?$/
/** Key types that are taken (surface, section 5); the key itself is in base64, a comment may follow. */
const PUBLIC_KEY =
  /^(ssh-ed25519|ecdsa-sha2-nistp(256|384|521)|ssh-rsa|sk-ssh-ed25519@openssh\.com|sk-ecdsa-sha2-nistp256@openssh\.com) [A-Za-z0-9+/]{32,1000}[A-Za-z0-9+/]*={0,3}( [^\r\n]{0,255})?$/
const LABEL = '[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?'
const PORT = '([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])'
const TARGET = new RegExp(`^(${LABEL}([.]${LABEL})*|\\[[0-9A-Fa-f:.]{2,45}\\]):${PORT}$`)
/** A target on the client's own machine, by every spelling that cannot mean another. */
const OWN_TARGET = '^(localhost|127([.](25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])){3}|[[]::1]):'
const ENTRY = /^[0-9A-Fa-f.:]{2,45}(\/[0-9]{1,3})?$/

/**
 * Names that the edge itself decides: they frame a message or are for one hop alone (RFC 9110, section 7.6.1), or say who the visitor is.
 */
const RESERVED_HEADERS = [
  ...['connection', 'content-length', 'expect', 'host', 'keep-alive', 'proxy-authenticate', 'proxy-authorization'],
  ...['proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'forwarded', 'x-request-id', 'mooring-error'],
]
const RESERVED_PREFIX = 'x-forwarded-'

const Entry = z.string().max(64).regex(ENTRY, ADDRESS_RULE.message).describe('An IP address or a CIDR range.')

/** A header that the edge sets or removes. */
export const HeaderModification = z.object({
  name: z.string().max(64).regex(TOKEN, 'must be a header name').describe('Name of the header.'),
  value: z
    .string()
    .max(1024)
    .regex(FIELD_VALUE, 'must be printable, on one line, without blanks at its ends')
    .describe('Its value, in place of any that there are; empty: the header is removed.'),
  type: z.enum(['request', 'response']).describe('The direction that it is applied to.'),
})

/** Settings of a tunnel (contract, "Tunnel config settings"; surface, section 5). Empty lists let everyone in. */
export const TunnelConfig = z.object({
  httpsOnly: z.boolean().default(false).describe('Plain HTTP is answered with a redirect to HTTPS.'),
  allowCorsPreflight: z.boolean().default(false).describe('The edge answers OPTIONS requests itself.'),
  forwardToOtherHosts: z.boolean().default(false).describe('The client may forward to other hosts than its own.'),
  sshIPWhitelist: z.array(Entry).max(100).default([]).describe('Who may connect over SSH.'),
  ingressIPWhitelist: z.array(Entry).max(100).default([]).describe('Who may send requests.'),
  liveHeaderModifications: z.array(HeaderModification).max(32).default([]).describe('Headers to set or remove.'),
  authMode: z.enum(AUTH_MODES).default('both').describe('What a client may log in by: a key, a temporary password, or either.'),
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
    .describe('What the client’s side connects to, named by the edge over remote SOCKS.'),
})
export type TunnelConfig = DeepReadonly<z.output<typeof TunnelConfig>>

const ownTarget = new RegExp(OWN_TARGET)

/** Whether the edge may have the client connect to the target (contract, "Tunnel config settings": forwardToOtherHosts). */
export function isTargetAllowed({ target, forwardToOtherHosts }: Pick<TunnelConfig, 'target' | 'forwardToOtherHosts'>): boolean {
  return target === undefined || forwardToOtherHosts || ownTarget.test(target.toLowerCase())
}

/** A rule over each item of a list of a config, or over one member of each, that no schema can say. */
export interface ItemRule {
  readonly list: 'sshIPWhitelist' | 'ingressIPWhitelist' | 'liveHeaderModifications' | 'authorizedKeys'
  readonly member?: 'name'
  /** What an item, or its member, must be. */
  readonly message: string
  readonly holds: (text: string) => boolean
}

/** An item rule that CRDs have, too. */
interface ListRule extends ItemRule {
  /** What the list must be: a CRD cannot say which item is wrong. */
  readonly ofList: string
  /** Over an `item`. */
  readonly cel: string
}

/** Indexes of the items that break a rule. What is no text is the schema's to refuse. */
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

/** Those that hold for stored objects as for requests. */
export const ITEM_RULES: readonly ListRule[] = [
  { list: 'sshIPWhitelist', ...ADDRESS_RULE },
  { list: 'ingressIPWhitelist', ...ADDRESS_RULE },
  {
    ...{ list: 'liveHeaderModifications', member: 'name' },
    message: 'must not be a header of framing, of one hop, or X-Forwarded-*: the edge decides those',
    ofList: 'must not name headers of framing, of one hop, or X-Forwarded-*: the edge decides those',
    cel: `!(item.name.lowerAscii() in [${reserved}]) && !item.name.lowerAscii().startsWith('${RESERVED_PREFIX}')`,
    holds: (name) => !isReserved(name),
  },
]

/** That of keys: no CRD can say it. REST refuses one that breaks it, a condition tells of one that came another way, and the edge passes over it. */
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

/** Of {@link isTargetAllowed}. */
export const TARGET_RULE: Rule = {
  cel: `!has(self.config.target) || self.config.forwardToOtherHosts || self.config.target.lowerAscii().matches('${OWN_TARGET}')`,
  message: 'must be on localhost, unless forwardToOtherHosts is true',
  field: 'spec.config.target',
  holds: ({ config }: Spec) => isTargetAllowed(config),
}

/** What a schema cannot say of a config. */
export const CONFIG_RULES: readonly Rule[] = [...ITEM_RULES.map(overList), TARGET_RULE]
