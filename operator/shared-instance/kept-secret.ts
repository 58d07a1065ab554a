import { createHash } from 'node:crypto'
import type { Secret } from '../../crds/core.ts'
import { annotations, labels } from '../../crds/names.ts'
import type { ObjectMeta } from '../../crds/kind.ts'
import { decodeSecret } from '../secret-data.ts'

/** Content of a credential Secret. A claim begins with the Secret, not the status: it fixes server, name and password. */
export interface Credentials {
  readonly name: string
  readonly password: string
  /** Object name of the DatabaseServer. */
  readonly server: string
  readonly passwordVersion: number
  /** Random UUID drawn with the password. Undefined in a Secret from before there were ids. */
  readonly passwordId: string | undefined
  readonly host: string
  readonly port: number
  /** Whether the connection string requires TLS. */
  readonly usesTls: boolean
  /** False when other values of the Secret were changed by hand: it must be rewritten, though its password is trusted. */
  readonly tidy: boolean
}

/** Resource with a database, and with a Secret for its credentials: a SharedInstance or a DedicatedDatabase. */
export interface SecretOwner {
  readonly metadata: ObjectMeta
  readonly status?:
    | {
        /** Name of the database; absent before the first claim. */
        readonly name?: string | undefined
        readonly serverRef?: { readonly name: string } | undefined
        readonly passwordVersion?: number | undefined
        readonly passwordId?: string | undefined
      }
    | undefined
}

/** Owner and CA that a Secret must agree with. */
export interface Expected {
  readonly owner: SecretOwner
  /** CA, in PEM, by which callers verify the server. */
  readonly ca: string
}

/** Value of the label managed-by on credential Secrets. */
export const MANAGED_BY = 'mooring'
export const PROVIDER = 'mooring'

/**
 * Checks a Secret with the name of the owner's credentials. @returns the credentials; `damaged` when name or password are missing or
 * contradictory; `foreign` when it belongs to another owner, which may need it. Pure.
 */
export function checkSecret(secret: Secret, { owner, ca }: Expected): Credentials | 'damaged' | 'foreign' {
  if (ownerOf(secret, owner) === 'other') return 'foreign'
  const text = textsOf(secret)
  const server = serverOf(secret, owner)
  if (server === undefined || !isItsName(text.database, owner) || !isConsistent(text, text.database)) return 'damaged'
  const { database: name, password, host, port } = text
  const isRest = text.provider === PROVIDER && text['ca.crt'] === ca && isAddressed(text)
  const tidy = isRest && isMarked(secret, owner)
  return {
    name,
    password,
    server,
    host,
    port: Number(port),
    usesTls: TLS_PARAMETER.test(text.uri),
    passwordVersion: versionOf(secret, owner),
    passwordId: passwordIdOf(secret, owner),
    tidy,
  }
}

/**
 * Whether a name is the owner's. Before the status records it, only the Secret has the name, and a tenant that can write Secrets could
 * name another tenant's database: the name must end in the suffix derived from the uid. (The identifier may have changed meanwhile.)
 */
const isItsName = (name: string, { status, metadata }: SecretOwner): boolean =>
  status?.name === undefined ? suffixOf(name) === tenantSuffix(metadata.uid) : name === status.name

const serverOf = ({ metadata }: Secret, { status }: SecretOwner): string | undefined =>
  status?.serverRef?.name ?? metadata.labels?.[labels.server]

/** Version of the password. Without the annotation it is the one in force. */
const versionOf = ({ metadata }: Secret, { status }: SecretOwner): number =>
  Number(metadata.annotations?.[annotations.passwordVersion] ?? status?.passwordVersion ?? 0)

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Id of the password. Without a valid annotation it is the one in force. */
function passwordIdOf({ metadata }: Secret, { status }: SecretOwner): string | undefined {
  const id = metadata.annotations?.[annotations.passwordId]
  return id !== undefined && UUID.test(id) ? id : status?.passwordId
}

/** Whether owner, labels and annotations are unchanged. */
function isMarked(secret: Secret, owner: SecretOwner): boolean {
  const { labels: marks = {}, annotations: notes = {} } = secret.metadata
  return (
    ownerOf(secret, owner) === 'itself' &&
    marks[labels.managedBy] === MANAGED_BY &&
    marks[labels.server] === serverOf(secret, owner) &&
    notes[annotations.passwordVersion] !== undefined &&
    notes[annotations.passwordId] === passwordIdOf(secret, owner)
  )
}

/** Parameters of the families' connection strings. */
const TLS_PARAMETER = /[?&](?:sslmode|ssl-mode|tls)=/

const KEYS = ['database', 'username', 'password', 'host', 'port', 'uri', 'provider', 'ca.crt'] as const
type Texts = Readonly<Record<(typeof KEYS)[number], string>>

/** Values of a Secret; empty texts for absent ones. */
function textsOf({ data }: Secret): Texts {
  return Object.fromEntries(KEYS.map((key) => [key, decodeSecret(data, key) ?? ''])) as Texts
}

/** Whether user, database and password are present and equal those of the URI. */
function isConsistent({ database, username, password, uri }: Texts, name: string): boolean {
  const inUri = partsOf(uri)
  return password !== '' && database === name && username === name && inUri?.user === name && inUri.password === password
}

function isAddressed({ host, port, database, uri }: Texts): boolean {
  return partsOf(uri)?.at === `${host.includes(':') ? `[${host}]` : host}:${port}/${database}`
}

/** Owner of a Secret. `none`: its owner reference was removed by hand, and no other was added. */
function ownerOf({ metadata }: Secret, owner: SecretOwner): 'itself' | 'none' | 'other' {
  const owners = metadata.ownerReferences ?? []
  if (owners.some(({ uid }) => uid === owner.metadata.uid)) return 'itself'
  const isMarked = metadata.labels?.[labels.managedBy] === MANAGED_BY && metadata.labels[labels.server] !== undefined
  return owners.length === 0 && isMarked ? 'none' : 'other'
}

function partsOf(uri: string): { user: string; password: string; at: string } | undefined {
  if (!URL.canParse(uri)) return undefined
  const { username, password, host, pathname } = new URL(uri)
  try {
    return { user: decodeURIComponent(username), password: decodeURIComponent(password), at: host + pathname }
  } catch (error) {
    // A percent sign that encodes nothing: the URI is not one of ours.
    if (error instanceof URIError) return undefined
    throw error
  }
}

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567'
const SUFFIX_LENGTH = 10
const STEM_LENGTH = 12

/** Suffix of ten base32 characters that identifies a database's instance. Derived from the uid alone, so it never changes. */
export function tenantSuffix(uid: string): string {
  const digest = createHash('sha256').update(uid).digest()
  return Array.from(digest.subarray(0, SUFFIX_LENGTH), (byte) => BASE32[byte & 31]).join('')
}

/** Name of database and user: at most twelve letters and digits of the identifier, starting with a letter, then the suffix. */
export function tenantName(identifier: string, uid: string): string {
  const stem = identifier.toLowerCase().replaceAll(/[^a-z0-9]/g, '')
  const lettered = /^[a-z]/.test(stem) ? stem : `d${stem}`
  return lettered.slice(0, STEM_LENGTH) + tenantSuffix(uid)
}

/** Suffix of a name that {@link tenantName} may have made, otherwise undefined: the sweeper handles no other names. */
export function suffixOf(name: string): string | undefined {
  return /^[a-z][a-z0-9]{0,11}([a-z2-7]{10})$/.exec(name)?.[1]
}
