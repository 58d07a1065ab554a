import { BlockList, isIP, SocketAddress } from 'node:net'
import { z } from 'zod'
import type { DeepReadonly, Rule } from './kind.ts'

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

/** What an entry of a firewall list must be, and what the name of a header must not. */
export const ENTRY_RULE = 'must be an IP address or a range such as 203.0.113.0/24'
export const RESERVED_RULE = 'must not be a header of framing, of one hop, or X-Forwarded-*: the edge decides those'

const Entry = z.string().max(64).regex(ENTRY, ENTRY_RULE).describe('An IP address or a CIDR range.')

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
        .regex(PUBLIC_KEY, 'must be a public key as OpenSSH writes it, of type ed25519, ecdsa, sk-* or rsa')
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

/** Whether a text is an IP address or a range, as Kubernetes' `isIP` and `isCIDR` read them: what a firewall list may hold. */
export function isAddressOrRange(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/')
  const family = isIP(address)
  if (family === 0 || rest.length > 0 || address.includes('%') || isMapped(address)) return false
  if (bits === undefined) return true
  const list = new BlockList()
  try {
    list.addSubnet(address, Number(bits), family === 4 ? 'ipv4' : 'ipv6')
    return /^(0|[1-9]\d*)$/.test(bits)
  } catch {
    return false
  }
}

/** An IPv4 address in IPv6's clothes (RFC 4291, section 2.5.5.2): visitors are never seen as one. */
function isMapped(address: string): boolean {
  return isIP(address) === 6 && /^::ffff:.*\./.test(new SocketAddress({ address, family: 'ipv6' }).address)
}

export function isReservedHeader(name: string): boolean {
  const lower = name.toLowerCase()
  return RESERVED_HEADERS.includes(lower) || lower.startsWith(RESERVED_PREFIX)
}

const ownTarget = new RegExp(OWN_TARGET)

/** Whether the edge may have the client connect to the target (contract, "Tunnel config settings": forwardToOtherHosts). */
export function isTargetAllowed({ target, forwardToOtherHosts }: Pick<TunnelConfig, 'target' | 'forwardToOtherHosts'>): boolean {
  return target === undefined || forwardToOtherHosts || ownTarget.test(target.toLowerCase())
}

type Spec = { readonly config: TunnelConfig }

const entriesOf = (field: 'sshIPWhitelist' | 'ingressIPWhitelist'): Rule => ({
  cel: `self.config.${field}.all(entry, isIP(entry) || isCIDR(entry))`,
  message: 'must hold IP addresses and ranges such as 203.0.113.0/24 alone',
  field: `spec.config.${field}`,
  holds: (spec: Spec) => spec.config[field].every(isAddressOrRange),
})

const reserved = RESERVED_HEADERS.map((name) => `'${name}'`).join(', ')

/** What a schema cannot say of the lists of a config. */
const LIST_RULES: readonly Rule[] = [
  entriesOf('sshIPWhitelist'),
  entriesOf('ingressIPWhitelist'),
  {
    cel: `self.config.liveHeaderModifications.all(item, !(item.name.lowerAscii() in [${reserved}]) && !item.name.lowerAscii().startsWith('${RESERVED_PREFIX}'))`,
    message: 'must not name headers of framing, of one hop, or X-Forwarded-*: the edge decides those',
    field: 'spec.config.liveHeaderModifications',
    holds: (spec: Spec) => spec.config.liveHeaderModifications.every(({ name }) => !isReservedHeader(name)),
  },
]

/** What fields of a config have to agree on. */
export const AGREEMENT_RULES: readonly Rule[] = [
  {
    cel: `!has(self.config.target) || self.config.forwardToOtherHosts || self.config.target.lowerAscii().matches('${OWN_TARGET}')`,
    message: 'must be on localhost, unless forwardToOtherHosts is true',
    field: 'spec.config.target',
    holds: ({ config }: Spec) => isTargetAllowed(config),
  },
]

/** What a schema cannot say of a config. */
export const CONFIG_RULES: readonly Rule[] = [...LIST_RULES, ...AGREEMENT_RULES]
