import { createHash } from 'node:crypto'
import { z } from 'zod'

/**
 * Record of the challenge dns-persist-01 (draft-ietf-acme-dns-persist), which an administrator creates once. For a wildcard certificate,
 * and for certificates of single tunnels:
 *
 *     _validation-persist.{domain} TXT "{issuer}; accounturi={URL of the account}; policy=wildcard"
 *     *.{domain}                   TXT "{issuer}; accounturi={URL of the account}"
 *
 * From draft 02 on, a hash of account, key and domain replaces the URL.
 */
export interface PersistentRecord {
  readonly name: string
  readonly value: string
}

/** Permission that a record must give. */
export interface Permission {
  /** Domain name of the certificate, which may be a wildcard. */
  readonly identifier: string
  /** Issuer domain names, at least one. The CA accepts each of them. */
  readonly issuers: readonly string[]
  /** Values of `accounturi` that the CA accepts, at least one. The first one is shown. */
  readonly accountUris: readonly string[]
}

const LABEL = '_validation-persist'
const POLICY = 'wildcard'
/** Maximum number of issuer domain names of a challenge. A CA may not send more. */
const ISSUERS_MAX = 10
/** Domain name in lower case, without a trailing dot. */
const Issuer = z
  .string()
  .max(253)
  .regex(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/)
/** Issuer domain names of a challenge. */
export const IssuerNames = z.array(Issuer).min(1).max(ISSUERS_MAX)

/** Returns the valid names of the `caaIdentities` of a directory (RFC 8555, section 9.7.6); undefined when it has none. */
export function issuersIn(identities: readonly string[] | undefined): readonly string[] | undefined {
  const names = (identities ?? []).filter((name) => Issuer.safeParse(name).success).slice(0, ISSUERS_MAX)
  return names.length === 0 ? undefined : names
}

/** Whether a URL can be the value of a parameter (RFC 8659, section 4.2). */
export const isParameterValue = (url: string): boolean => /^[!-:<-~]{1,500}$/.test(url)

/** Account whose hash is in a record. */
export interface HashedAccount {
  /** `accountHashPrefix` of the directory. */
  readonly prefix: string
  /** Thumbprint of the account's key (RFC 7638). */
  readonly thumbprint: string
  readonly accountUrl: string
}

/**
 * Returns the values of `accounturi` that draft 02 accepts for a domain name: with the hash for that name, and with the one for all names (`*`). The record
 * of single certificates is one for all names, so its value comes first.
 */
export function hashedUris(identifier: string, account: HashedAccount): readonly string[] {
  const uris = [hashedUri(identifier.replace(/^\*\./, ''), account), hashedUri('*', account)]
  return isWildcard(identifier) ? uris : uris.toReversed()
}

function hashedUri(name: string, { prefix, thumbprint, accountUrl }: HashedAccount): string {
  const length = Buffer.of(Buffer.byteLength(name))
  const hash = createHash('sha256').update(Buffer.concat([length, Buffer.from(name + thumbprint + accountUrl)]))
  return `${prefix}sha-256/${hash.digest('base64url')}`
}

const isWildcard = (identifier: string): boolean => identifier.startsWith('*.')

/** Returns the name at which the CA looks for the record of a domain name. */
export const persistentName = (identifier: string): string => `${LABEL}.${identifier.replace(/^\*\./, '')}`

/**
 * Returns the record that the administrator is to create. For tunnels with certificates of their own, the CA asks for a name per tunnel,
 * and one wildcard record of DNS answers for all names (RFC 4592).
 */
export function recordFor({ identifier, issuers, accountUris }: Permission): PersistentRecord {
  const value = `${issuers[0] ?? ''}; accounturi=${accountUris[0] ?? ''}`
  if (isWildcard(identifier)) return { name: persistentName(identifier), value: `${value}; policy=${POLICY}` }
  return { name: `*.${identifier.slice(identifier.indexOf('.') + 1)}`, value }
}

const SHOWN_MAX = 200

/**
 * Returns why none of the values of a TXT record permits the certificate; undefined when one does. Values for other CAs are ignored.
 * @param now milliseconds since the epoch
 */
export function recordProblem(values: readonly string[], permission: Permission, now: number): string | undefined {
  if (values.length === 0) return 'has no such record'
  const problems = values.flatMap((value) => {
    const [issuer = '', ...parameters] = value.split(';').map(trimmed)
    if (!permission.issuers.includes(issuer)) return []
    const why = parametersProblem(parameters, permission, now)
    return [why && `has the value "${shown(value)}", ${why}`]
  })
  if (problems.includes(undefined)) return undefined
  return problems[0] ?? 'has only values for other purposes'
}

/** Returns why the parameters of a value do not permit the certificate; undefined when they do. CAs ignore unknown parameters. */
function parametersProblem(parameters: readonly string[], permission: Permission, now: number): string | undefined {
  const tags = new Map<string, string>()
  for (const parameter of parameters) {
    const [, tag = '', text = ''] = /^([^=]+)=(.*)$/s.exec(parameter) ?? []
    const [name, value] = [trimmed(tag).toLowerCase(), trimmed(text)]
    if (name === '') return 'where each semicolon must precede a parameter: tag=value'
    if (tags.has(name)) return `which has ${name} twice`
    if (!/^[!-:<-~]*$/.test(value)) return `whose ${name} has a character that is not allowed there`
    tags.set(name, value)
  }
  return tagsProblem(tags, permission) ?? endProblem(tags.get('persistuntil'), now)
}

function tagsProblem(tags: ReadonlyMap<string, string>, { identifier, accountUris }: Permission): string | undefined {
  const account = tags.get('accounturi')
  if (account === undefined) return 'which lacks accounturi'
  if (!accountUris.includes(account)) return 'whose accounturi is that of another account'
  return isWildcard(identifier) && tags.get('policy')?.toLowerCase() !== POLICY ? `which lacks policy=${POLICY}` : undefined
}

/** Returns why the end of a record is invalid or past; undefined when it is neither. `until` is in seconds since the epoch. */
function endProblem(until: string | undefined, now: number): string | undefined {
  if (until === undefined) return undefined
  if (!/^-?\d{1,15}$/.test(until)) return 'whose persistUntil is not a number of seconds'
  return Number(until) * 1_000 < now ? 'whose persistUntil is over' : undefined
}

const trimmed = (text: string): string => text.replace(/^[ \t]+|[ \t]+$/g, '')

/** Returns a value for a message. The value comes from DNS, so characters that are not printable are replaced. */
const shown = (value: string): string => value.slice(0, SHOWN_MAX).replace(/[^ -~]+/g, '?')
