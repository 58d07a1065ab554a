import { randomBytes, createHash, createHmac, randomInt } from 'node:crypto'
import { z } from 'zod'
import type { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import type { OwnerReference } from '../../crds/kind.ts'
import { annotations } from '../../crds/names.ts'
import type { Tunnel } from '../../crds/tunnel.ts'
import { endOfPassword, PASSWORD_LIFE_MS, TunnelPassword } from '../../crds/tunnel-password.ts'
import { LIVE_PASSWORDS_MAX, livePasswords, ownerNamedBy, passwordsOf } from '../../shared/live-passwords.ts'
import type { Cache } from '../../store/cache.ts'
import type { Store } from '../../store/port.ts'
import { ApiError } from '../http/errors.ts'
import type { Reply, RouteRequest } from '../http/route.ts'
import type { Audit } from '../journal/audit.ts'
import { settled, untilGone, untilKnown } from '../resources/cache-waits.ts'
import { requestDeletion } from '../resources/conditional-writes.ts'
import { createOnce, createCreationQuota, objectName, requestHash } from '../resources/creations.ts'
import { createdAtOf, createdNow } from '../resources/names-and-times.ts'

export const PasswordView = z
  .object({
    id: z.uuid(),
    password: z.string().optional().describe('Only in the answer to the creation.'),
    expiresAt: z.iso.datetime(),
    createdAt: z.iso.datetime(),
    createdBy: z.string().nullable(),
  })
  .meta({ id: 'TunnelPassword' })
type PasswordView = z.output<typeof PasswordView>

export function passwordView(password: TunnelPassword): PasswordView {
  const { metadata } = password
  return {
    id: metadata.uid,
    expiresAt: new Date(endOfPassword(password)).toISOString(),
    createdAt: createdAtOf(metadata),
    createdBy: metadata.annotations?.[annotations.createdBy] ?? null,
  }
}

/** Tunnel, or database with an SSH tunnel: SSH clients log in to it. */
export type LoginOwner = Tunnel | DedicatedDatabase

interface LiveDeps {
  readonly tunnelPasswords: Cache<typeof TunnelPassword>
  readonly now: () => Date
}

/** Creates the lookups of an owner's passwords, oldest first: `lasting` ones have not expired, and `live` ones are accepted by the edge. */
export function createPasswordLookup({ tunnelPasswords, now }: LiveDeps) {
  function allOf(owner: LoginOwner): readonly TunnelPassword[] {
    const { namespace } = owner.metadata
    return passwordsOf(owner, tunnelPasswords.list(namespace === undefined ? {} : { namespace }))
  }
  return {
    lastingPasswordsOf: (owner: LoginOwner) => allOf(owner).filter((password) => endOfPassword(password) > now().getTime()),
    livePasswordsOf: (owner: LoginOwner) => livePasswords(allOf(owner), endOfPassword, now().getTime()),
  }
}

export interface SshPasswordsDeps<O extends LoginOwner> extends LiveDeps {
  readonly store: Store
  /** Secret from which the password of a repeated request is derived again. */
  readonly tokenSecret: Uint8Array
  readonly audit: Audit
  /** Word for the owner of a password in messages. */
  readonly what: 'tunnel' | 'database'
  byUid(uid: string): O | undefined
  /** Reference to the owner in the spec of a password, and in its metadata. */
  referTo(owner: O): { readonly spec: Pick<TunnelPassword['spec'], 'tunnelRef' | 'databaseRef'>; readonly owner: OwnerReference }
  /** Rejects when the owner is deleted. */
  whenDeleted(owner: O): Parameters<typeof untilKnown>[2]
}

type Request = Pick<RouteRequest, 'principal' | 'idempotencyKey' | 'ifMatch' | 'requestId' | 'sourceIp'>

/** Temporary passwords of tunnels, or those of databases. */
export interface SshPasswords<O extends LoginOwner> {
  /** Returns the passwords that the edge accepts, oldest first. */
  live(owner: O): readonly TunnelPassword[]
  /**
   * Issues a password. Only this response, and its repetition with the same Idempotency-Key, contains the password.
   * @throws ApiError `quota_exceeded`, `conflict`
   */
  issue(owner: O, request: Request): Promise<Reply<{ readonly password: PasswordView }> & { readonly status: 201 }>
  /** Revokes the password of this id; its sessions end. @throws ApiError `not_found` */
  revoke(owner: O, id: string, request: Request): Promise<void>
}

export function createSshPasswords<O extends LoginOwner>(deps: SshPasswordsDeps<O>): SshPasswords<O> {
  const { store, tunnelPasswords, tokenSecret, audit, now, what } = deps
  const { livePasswordsOf, lastingPasswordsOf } = createPasswordLookup(deps)

  /** Quota of live passwords per owner; the uid of the owner serves as the namespace of the quota. */
  const quota = createCreationQuota<typeof TunnelPassword>({
    max: LIVE_PASSWORDS_MAX,
    of: what,
    what: 'live passwords',
    cache: {
      list({ namespace: uid = '' } = {}) {
        const owner = deps.byUid(uid)
        return owner ? lastingPasswordsOf(owner) : []
      },
    },
  })

  async function issue(owner: O, { principal, idempotencyKey: key, requestId, sourceIp }: Request) {
    const { uid, namespace = '' } = owner.metadata
    const caller = { namespace, user: principal.user, key: key === undefined ? undefined : `${uid} ${key}` }
    const name = objectName('p', caller)
    using reservations = new DisposableStack()
    reservations.use(quota.reserve({ namespace: uid, name }))
    const salt = randomBytes(32).toString('base64url')
    const secret = key === undefined ? randomTunnelPassword() : deriveTunnelPassword(tokenSecret, salt)
    const reference = deps.referTo(owner)
    const draft = {
      metadata: {
        namespace,
        name,
        annotations: {
          [annotations.createdBy]: principal.user,
          ...createdNow(now()),
          ...(key === undefined ? {} : { [annotations.tokenSalt]: salt }),
        },
        ownerReferences: [reference.owner],
      },
      spec: {
        ...reference.spec,
        sha256: sha256Of(secret),
        expiresAt: new Date(now().getTime() + PASSWORD_LIFE_MS).toISOString(),
      },
    }
    const { object, created } = await createOnce(store, TunnelPassword, draft, requestHash({}))
    if (created) await audit.record({ principal, requestId, sourceIp, action: 'create', after: object })
    await untilKnown(tunnelPasswords, object, deps.whenDeleted(owner))
    if (created && !livePasswordsOf(owner).some(({ metadata }) => metadata.uid === object.metadata.uid)) {
      // Other passwords were created at the same time through another API server or kubectl; the edge would reject this one.
      await store.delete(TunnelPassword, object.metadata, { uid: object.metadata.uid })
      await audit.record({ principal, requestId, sourceIp, action: 'delete', before: object })
      throw new ApiError(
        'quota_exceeded',
        `the quota of this ${what} is used up: ${LIVE_PASSWORDS_MAX} of ${LIVE_PASSWORDS_MAX} live passwords; revoke one, or wait until one expires`,
      )
    }
    const password = created ? secret : passwordOf(object, tokenSecret)
    const { resourceVersion: etag } = (await settled(tunnelPasswords, object)).metadata
    return { status: 201 as const, data: { password: { ...passwordView(object), password } }, etag }
  }

  async function revoke(owner: O, id: string, { principal, ifMatch, requestId, sourceIp }: Request): Promise<void> {
    const password = tunnelPasswords.byUid(id.toLowerCase())
    const named = password && ownerNamedBy(password)
    const { namespace, name } = owner.metadata
    const isOfOwner = named?.kind === owner.kind && named.namespace === namespace && named.name === name
    if (!password || !isOfOwner) throw new ApiError('not_found', `this ${what} has no password with this id`)
    if (await requestDeletion(store, TunnelPassword, password, ifMatch)) {
      await audit.record({ principal, requestId, sourceIp, action: 'delete', before: password })
    }
    await untilGone(tunnelPasswords, password)
  }

  return { live: livePasswordsOf, issue, revoke }
}

/** Returns the password that a request with the same Idempotency-Key created. @throws ApiError `conflict` when the secret has changed */
function passwordOf({ metadata, spec }: TunnelPassword, secret: Uint8Array): string {
  const password = deriveTunnelPassword(secret, metadata.annotations?.[annotations.tokenSalt] ?? '')
  if (sha256Of(password) === spec.sha256) return password
  throw new ApiError('conflict', 'this password cannot be shown again; issue another')
}

const PREFIX = 'mt_'
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const LENGTH = 32

/** Creates a password: `mt_` and 32 base62 characters, some 190 bits. */
export function randomTunnelPassword(): string {
  return PREFIX + Array.from({ length: LENGTH }, () => BASE62[randomInt(BASE62.length)]).join('')
}

/** Derives a password from `salt` and the installation's secret, so that a repeated request gets the same password again. */
export function deriveTunnelPassword(secret: Uint8Array, salt: string): string {
  const bytes = createHmac('sha512', secret).update(`tunnel-password:${salt}`).digest()
  // 256 is not a multiple of 62: each of the first 8 characters has a probability of 5/256, the others of 4/256. At least 181 bits remain.
  return PREFIX + Array.from(bytes.subarray(0, LENGTH), (byte) => BASE62[byte % BASE62.length]).join('')
}

const sha256Of = (password: string): string => createHash('sha256').update(password).digest('hex')
