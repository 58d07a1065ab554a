import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { z } from 'zod'
import { networkAround, parseRange } from '../crds/formats/address-range.ts'
import { MOTORS } from '../crds/motor.ts'
import { ISSUER_NAME, OWN_ISSUER, RESERVED_NAMES } from '../crds/names.ts'
import { type SettingsOf, withDefault } from './settings.ts'

/** External issuer of tokens; its keys are found by OpenID discovery. */
export interface NamedIssuer {
  /** Prefix of the issuer's users and groups: `{name}:{sub}`. */
  readonly name: string
  readonly url: string
}

const TAKEN_ISSUERS: readonly string[] = [OWN_ISSUER, ...RESERVED_NAMES]

/**
 * Rules of settings. The input is the text of a flag or an environment variable; the message completes the sentence "--flag must be …".
 */
const portOr = <Zero extends 'auto' | 'off'>(zero: Zero, rule: string) =>
  z
    .string()
    .regex(/^(auto|\d{1,5})$/, rule)
    .transform((text): number | 'auto' | Zero => (text === 'auto' ? text : Number(text) === 0 ? zero : Number(text)))
    .refine((port) => typeof port === 'string' || port <= 65_535, rule)

export const ListenPort = portOr('auto', 'a port from 1 to 65535, or auto (0 means the same) for a free one')
export const OptionalPort = portOr('off', 'a port from 1 to 65535, auto for a free one, or 0 for off')

export const whole = (min: number, max: number) => {
  const rule = `a whole number from ${min} to ${max}`
  return z
    .string()
    .regex(/^\d{1,9}$/, rule)
    .transform(Number)
    .refine((value) => value >= min && value <= max, rule)
}

export const Path = z
  .string()
  .min(1, 'a path')
  .regex(/^[^\u0000-\u001f\u007f]*$/, 'a path without control characters')

const TEXT_RULE = '1 to 253 characters without blanks and control characters'
export const Text = z.string().regex(/^[\u0021-\u007e]{1,253}$/, TEXT_RULE)

export const Address = z.string().refine((text) => isIP(text) !== 0, 'an IP address such as 127.0.0.1, 0.0.0.0 or ::1')

const items = (text: string): string[] => text.split(/[\s,]+/).filter((item) => item !== '')

const RANGE_RULE = 'IP addresses or ranges such as 10.0.0.0/8, with commas or blanks between them'
function wrongRange(all: readonly string[]): string {
  const inexact = all.find((text) => networkAround(text) !== undefined)
  const network = inexact === undefined ? undefined : networkAround(inexact)
  return network === undefined ? RANGE_RULE : `ranges without address bits after the prefix, such as ${network} for ${inexact}`
}
/** List of addresses and CIDR ranges; may be empty. */
export const Ranges = z
  .string()
  .transform(items)
  .refine((all) => all.every((text) => parseRange(text) !== undefined), { error: ({ input }) => wrongRange(input as string[]) })

const DOMAIN_RULE = 'a domain name in lower case, at most 236 characters, such as tunnel.localhost'
/** Domain name (RFC 1035) that leaves room for a hostname of 16 characters and a dot before it. */
export const Domain = z
  .string()
  .max(236, DOMAIN_RULE)
  .regex(/^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/, DOMAIN_RULE)

const PUBLIC_HOST_RULE =
  'a host name such as my.example.org, or an IP address that clients can connect to, without scheme and port'
/** Host name (RFC 1123, section 2.1). The last label has a letter, otherwise the text could be an address. */
const HOST_NAME = /^(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*(?=[0-9-]*[a-z])[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/
const isWildcard = (text: string) => isIP(text) !== 0 && /^[0.:]+$/.test(text)
/** Public host name or address of this machine, converted to lower case. */
export const PublicHost = z
  .string()
  .transform((text) => text.toLowerCase())
  .refine((text) => (isIP(text) !== 0 && !isWildcard(text)) || HOST_NAME.test(text), PUBLIC_HOST_RULE)

const HOSTS_RULE = 'host names or IP addresses, with commas or blanks between them'
const HOST = /^(?=.{1,253}$)(\*\.)?[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/
export const Host = z.string().regex(HOST, 'a domain name in lower case')
/** List of host names and addresses; may be empty. */
export const Hosts = z
  .string()
  .transform(items)
  .refine((all) => all.every((host) => isIP(host) !== 0 || HOST.test(host)), HOSTS_RULE)

const URL_RULE = 'an https URL without user, query and fragment'
/** Issuer URL of tokens. */
export const HttpsUrl = z.string().refine((text) => text.startsWith('https://') && isIssuerUrl(text), URL_RULE)

const SWITCH = { on: true, true: true, '1': true, yes: true, off: false, false: false, '0': false, no: false } as const
export const Switch = z
  .string()
  .refine((text): text is keyof typeof SWITCH => Object.hasOwn(SWITCH, text), 'on or off')
  .transform((text) => SWITCH[text])

export const oneOf = <const T extends readonly [string, ...string[]]>(values: T) =>
  z.enum(values, { error: `one of ${values.join(', ')}` })

const MOTOR_RULE = `one of the motors ${MOTORS.join(', ')}`
/** List of different motors. */
export const Motors = z
  .string()
  .transform(items)
  .pipe(z.array(z.enum(MOTORS, { error: MOTOR_RULE })))
  .transform((motors) => [...new Set(motors)])

const OWN_ENGINE_RULE = `motor=program with the path of a server program, such as mysql-8.0.29=/usr/sbin/mysqld, or motor=docker[:image], each motor once; the motors are ${MOTORS.join(', ')}`

/** Server of a motor: a program of the machine, or an image of its Docker (without a name: the official image of the motor's version). */
export type EngineSource = { readonly program: string } | { readonly image: string | undefined }

const DOCKER = /^docker(?::(?<image>[\w.:/@-]+))?$/

/** Reads what is behind `=`. A path has a slash, and becomes absolute. */
function engineSource(text: string, ctx: z.RefinementCtx): EngineSource {
  const docker = DOCKER.exec(text)
  if (docker) return { image: docker.groups?.image }
  if (text.includes('/') && !text.includes('=')) return { program: resolve(text) }
  ctx.addIssue({ code: 'custom', message: OWN_ENGINE_RULE })
  return z.NEVER
}

const OwnEngine = z
  .string()
  .regex(/^[^=]+=/, OWN_ENGINE_RULE)
  .transform((item) => ({ motor: item.slice(0, item.indexOf('=')), source: item.slice(item.indexOf('=') + 1) }))
  .pipe(z.object({ motor: z.enum(MOTORS, { error: OWN_ENGINE_RULE }), source: z.string().transform(engineSource) }))

/** List of `motor=program` and `motor=docker[:image]` items. */
export const OwnEngines = z
  .string()
  .transform(items)
  .pipe(z.array(OwnEngine))
  .refine((engines) => new Set(engines.map(({ motor }) => motor)).size === engines.length, OWN_ENGINE_RULE)

const ISSUER_RULE = `name=https://issuer (http only on loopback), where name has only a-z, 0-9 and -, and is not one of ${TAKEN_ISSUERS.join(', ')}`

function isIssuerUrl(text: string): boolean {
  const url = URL.parse(text)
  if (url === null || [url.username, url.search, url.hash].some((part) => part !== '')) return false
  return url.protocol === 'https:' || (url.protocol === 'http:' && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname))
}

/** List of `name=url` items with unique names, separated by commas or blanks. */
export const Issuers = z
  .string()
  .transform(items)
  .pipe(
    z.array(
      z
        .string()
        .regex(/=/, ISSUER_RULE)
        .transform((item): NamedIssuer => ({ name: item.slice(0, item.indexOf('=')), url: item.slice(item.indexOf('=') + 1) }))
        .refine(({ name, url }) => ISSUER_NAME.test(name) && !TAKEN_ISSUERS.includes(name) && isIssuerUrl(url), ISSUER_RULE),
    ),
  )
  .refine((issuers) => new Set(issuers.map(({ name }) => name)).size === issuers.length, 'a list with unique names')

/** Default quotas of a namespace (docs/api.md, "Rate limits and quotas"), the same as in the chart's values. */
export const DEFAULT_QUOTAS = { quotaInstances: 50, quotaDatabases: 5, quotaTunnels: 50 } as const

const quota = (name: keyof typeof DEFAULT_QUOTAS, about: string) =>
  withDefault(whole(0, 1_000_000), '<n>', [String(DEFAULT_QUOTAS[name]), about])

/** Quota settings. The API rejects a POST beyond a quota; the operator does not serve objects beyond it, also when kubectl created them. */
export const QUOTA_SETTINGS = {
  quotaInstances: quota('quotaInstances', 'shared instances in one namespace'),
  quotaDatabases: quota('quotaDatabases', 'dedicated databases in one namespace'),
  quotaTunnels: quota('quotaTunnels', 'tunnels in one namespace'),
} as const

export type Quotas = SettingsOf<typeof QUOTA_SETTINGS>

/** Setting of the addresses that receivers of webhooks may have (docs/webhooks.md, "Addresses"). */
export const privateAddressesSetting = (initial: 'on' | 'off') =>
  withDefault(Switch, '[on|off]', [initial, 'whether webhooks may have private and loopback addresses'])

/** Setting of the private networks that receivers of webhooks may be in, in a cluster (docs/webhooks.md, "Addresses"). */
export const ALLOWED_NETWORKS = withDefault(Ranges, '<ranges>', [
  '',
  'private addresses and ranges that webhooks may have nevertheless',
])
