import type { Secret } from '../../crds/core.ts'
import { annotations, labels } from '../../crds/names.ts'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import { decodeSecret } from '../secret-data.ts'
import { suffixOf, tenantSuffix } from './naming.ts'

/** What an instance's Secret says. The Secret, not the status, is where a claim begins: it fixes server, name and password. */
export interface Credentials {
  readonly name: string
  readonly password: string
  /** Object name of the DatabaseServer. */
  readonly server: string
  readonly passwordVersion: number
  readonly host: string
  readonly port: number
  /** False when something beside these was changed by hand, so that the Secret needs writing though its password can be trusted. */
  readonly tidy: boolean
}

/** The Secret of a claim that is to be judged, and what it must agree with. */
export interface Judgement {
  readonly instance: SharedInstance
  /** PEM of the CA that callers check the server by. */
  readonly ca: string
}

/** Value of the label managed-by on credential Secrets. */
export const MANAGED_BY = 'mooring'
export const PROVIDER = 'mooring'

/**
 * What a Secret of the name of an instance's own is worth: its credentials, or why it has none. `damaged`: name and password are not to be
 * had from it, or contradict each other. `foreign`: it belongs to somebody else, who may need it. Pure.
 */
export function judgeSecret(secret: Secret, { instance, ca }: Judgement): Credentials | 'damaged' | 'foreign' {
  if (ownerOf(secret, instance) === 'other') return 'foreign'
  const text = textsOf(secret)
  const server = serverOf(secret, instance)
  if (server === undefined || !isItsName(text.database, instance) || !isConsistent(text, text.database)) return 'damaged'
  const { database: name, password, host, port } = text
  const isRest = text.provider === PROVIDER && text['ca.crt'] === ca && isAddressed(text)
  const passwordVersion = versionOf(secret, instance)
  return { name, password, server, host, port: Number(port), passwordVersion, tidy: isRest && isMarked(secret, instance) }
}

/**
 * Before the status says the name, the Secret alone does, and whoever may write Secrets in a tenant's namespace could name a neighbour's
 * database there: it must end in what follows from the uid. (The identifier, from which the rest comes, may have changed meanwhile.)
 */
const isItsName = (name: string, { status, metadata }: SharedInstance): boolean =>
  status?.name === undefined ? suffixOf(name) === tenantSuffix(metadata.uid) : name === status.name

const serverOf = ({ metadata }: Secret, { status }: SharedInstance): string | undefined =>
  status?.serverRef?.name ?? metadata.labels?.[labels.server]

/** Without its note the password is taken for the one in force. */
const versionOf = ({ metadata }: Secret, { status }: SharedInstance): number =>
  Number(metadata.annotations?.[annotations.passwordVersion] ?? status?.passwordVersion ?? 0)

/** Owner, labels and note are as they were written. */
function isMarked(secret: Secret, instance: SharedInstance): boolean {
  const { labels: marks = {}, annotations: notes = {} } = secret.metadata
  return (
    ownerOf(secret, instance) === 'itself' &&
    marks[labels.managedBy] === MANAGED_BY &&
    marks[labels.server] === serverOf(secret, instance) &&
    notes[annotations.passwordVersion] !== undefined
  )
}

const KEYS = ['database', 'username', 'password', 'host', 'port', 'uri', 'provider', 'ca.crt'] as const
type Texts = Readonly<Record<(typeof KEYS)[number], string>>

/** Its values; empty what is not there. */
function textsOf({ data }: Secret): Texts {
  return Object.fromEntries(KEYS.map((key) => [key, decodeSecret(data, key) ?? ''])) as Texts
}

/** True when user, database and password are there and are those of the URI. */
function isConsistent({ database, username, password, uri }: Texts, name: string): boolean {
  const inUri = partsOf(uri)
  return password !== '' && database === name && username === name && inUri?.user === name && inUri.password === password
}

function isAddressed({ host, port, database, uri }: Texts): boolean {
  return partsOf(uri)?.at === `${host.includes(':') ? `[${host}]` : host}:${port}/${database}`
}

/** `nobody`: its owner was taken away by hand, which makes it nobody else's. */
function ownerOf({ metadata }: Secret, instance: SharedInstance): 'itself' | 'nobody' | 'other' {
  const owners = metadata.ownerReferences ?? []
  if (owners.some(({ uid }) => uid === instance.metadata.uid)) return 'itself'
  const isMarked = metadata.labels?.[labels.managedBy] === MANAGED_BY && metadata.labels[labels.server] !== undefined
  return owners.length === 0 && isMarked ? 'nobody' : 'other'
}

function partsOf(uri: string): { user: string; password: string; at: string } | undefined {
  if (!URL.canParse(uri)) return undefined
  const { username, password, host, pathname } = new URL(uri)
  try {
    return { user: decodeURIComponent(username), password: decodeURIComponent(password), at: host + pathname }
  } catch (error) {
    // A percent sign that encodes nothing: not a URI that we wrote.
    if (error instanceof URIError) return undefined
    throw error
  }
}
