import { randomBytes, createHash, createHmac, randomInt } from 'node:crypto'
import { z } from 'zod'
import { page, PageQuery, resourceKey } from '../../http/paging.ts'
import { type AnyRoute, route } from '../../http/route.ts'
import { idParam, listOf } from '../../tenancy/tenancy-deps.ts'
import type { TunnelDeps } from '../tunnel-deps.ts'
import { createTunnelLookup, requireTunnelNotDeleting, TUNNEL_PATH, TunnelParams } from '../tunnel-lookup.ts'
import { ownerReferenceTo } from '../../../crds/kind.ts'
import { LIVE_PASSWORDS_MAX, livePasswords, passwordsOf } from '../../../shared/live-passwords.ts'
import { annotations } from '../../../crds/names.ts'
import { Tunnel } from '../../../crds/tunnel.ts'
import { PASSWORD_LIFE_MS, TunnelPassword, endOfPassword } from '../../../crds/tunnel-password.ts'
import { rejectWhenDeleted, settled, untilGone, untilKnown } from '../../resources/cache-waits.ts'
import { createdNow, createdAtOf } from '../../resources/names-and-times.ts'
import { ApiError } from '../../http/errors.ts'
import { createOnce, objectName, requestHash, createQuota } from '../../resources/creations.ts'
import { requestDeletion } from '../../resources/conditional-writes.ts'
import type { Cache } from '../../../store/cache.ts'

const LIST_NEEDS = [{ verb: 'list', resource: 'tunnelpasswords' }] as const

/** `GET …/tunnels/{t}/passwords`: without the passwords, which are not stored. */
export function listTunnelPasswords(deps: TunnelDeps): AnyRoute {
  const { livePasswordsOf } = createPasswordLookup(deps)
  const find = createTunnelLookup(deps)
  return route({
    method: 'get',
    path: `${TUNNEL_PATH}/passwords`,
    on: ['shared'],
    id: 'listTunnelPasswords',
    summary: 'List the valid temporary passwords of a tunnel.',
    params: TunnelParams,
    query: z.object(PageQuery),
    replies: { 200: listOf('passwords', PasswordView) },
    async handle({ principal, params, query }) {
      const { tunnel } = await find(principal, params, LIST_NEEDS)
      const { items, nextCursor } = page(livePasswordsOf(tunnel), query, resourceKey)
      return { status: 200, data: { passwords: items.map(passwordView), nextCursor } }
    },
  })
}

const CREATE_NEEDS = [{ verb: 'create', resource: 'tunnelpasswords' }] as const

/** `POST …/tunnels/{t}/passwords`: only this answer, and its repetition with the same Idempotency-Key, contains the password. */
export function createTunnelPassword(deps: TunnelDeps): AnyRoute {
  const { store, tunnels, tunnelPasswords, tokenSecret, audit, now } = deps
  const find = createTunnelLookup(deps)

  const { livePasswordsOf, lastingPasswordsOf } = createPasswordLookup(deps)

  /** Quota of live passwords per tunnel; the uid of the tunnel serves as the namespace of the quota. */
  const quota = createQuota<typeof TunnelPassword>({
    ...{ max: LIVE_PASSWORDS_MAX, of: 'tunnel', what: 'live passwords' },
    cache: {
      list({ namespace: uid = '' } = {}) {
        const tunnel = tunnels.byUid(uid)
        return tunnel ? lastingPasswordsOf(tunnel) : []
      },
    },
  })

  return route({
    method: 'post',
    path: `${TUNNEL_PATH}/passwords`,
    on: ['shared'],
    id: 'createTunnelPassword',
    summary: 'Issue a temporary password for SSH logins to a tunnel; it is valid for 4 hours.',
    params: TunnelParams,
    idempotent: true,
    replies: { 201: z.object({ password: PasswordView }) },
    async handle({ principal, params, idempotencyKey: key, requestId, sourceIp }) {
      const { tunnel, scope } = await find(principal, params, CREATE_NEEDS)
      requireTunnelNotDeleting(tunnel)
      requirePasswordLogin(tunnel)
      const { namespace } = scope
      const owner = { namespace, user: principal.user, key: key === undefined ? undefined : `${tunnel.metadata.uid} ${key}` }
      const name = objectName('p', owner)
      using reservations = new DisposableStack()
      reservations.use(quota.reserve({ namespace: tunnel.metadata.uid, name }))
      const salt = randomBytes(32).toString('base64url')
      const secret = key === undefined ? randomTunnelPassword() : deriveTunnelPassword(tokenSecret, salt)
      const draft = {
        metadata: {
          ...{ namespace, name },
          annotations: {
            [annotations.createdBy]: principal.user,
            ...createdNow(now()),
            ...(key === undefined ? {} : { [annotations.tokenSalt]: salt }),
          },
          ownerReferences: [ownerReferenceTo(Tunnel, tunnel)],
        },
        spec: {
          tunnelRef: { name: tunnel.metadata.name },
          sha256: sha256Of(secret),
          expiresAt: new Date(now().getTime() + PASSWORD_LIFE_MS).toISOString(),
        },
      }
      const { object, created } = await createOnce(store, TunnelPassword, draft, requestHash({}))
      if (created) await audit.record({ principal, requestId, sourceIp, action: 'create', after: object })
      await untilKnown(tunnelPasswords, object, rejectWhenDeleted(tunnels, tunnel, 'the tunnel was deleted meanwhile'))
      if (created && !livePasswordsOf(tunnel).some(({ metadata }) => metadata.uid === object.metadata.uid)) {
        // Other passwords were created at the same time through another API server or kubectl; the edge would reject this one.
        await store.delete(TunnelPassword, object.metadata, { uid: object.metadata.uid })
        await audit.record({ principal, requestId, sourceIp, action: 'delete', before: object })
        throw new ApiError(
          'quota_exceeded',
          `the quota of this tunnel is used up: ${LIVE_PASSWORDS_MAX} of ${LIVE_PASSWORDS_MAX} live passwords; revoke one, or wait until one expires`,
        )
      }
      const password = created ? secret : passwordOf(object, tokenSecret)
      const { resourceVersion: etag } = (await settled(tunnelPasswords, object)).metadata
      return { status: 201, data: { password: { ...passwordView(object), password } }, etag }
    },
  })
}

/** Checks that the tunnel accepts passwords. @throws ApiError `conflict` */
function requirePasswordLogin({ spec }: Tunnel): void {
  if (spec.config.authMode !== 'key') return
  const fix = 'PATCH it with {"config":{"authMode":"both"}} first, or log in with a key of authorizedKeys'
  throw new ApiError('conflict', `authMode of this tunnel is key, so that it takes no passwords; ${fix}`)
}

/** Returns the password that a request with the same Idempotency-Key created. @throws ApiError `conflict` when the secret has changed */
function passwordOf({ metadata, spec }: TunnelPassword, secret: Uint8Array): string {
  const password = deriveTunnelPassword(secret, metadata.annotations?.[annotations.tokenSalt] ?? '')
  if (sha256Of(password) === spec.sha256) return password
  throw new ApiError('conflict', 'this password cannot be shown again; issue another')
}

const DELETE_NEEDS = [{ verb: 'delete', resource: 'tunnelpasswords' }] as const
const PasswordParams = z.object({ ...TunnelParams.shape, id: idParam('Id of the password.') })

/** `DELETE …/tunnels/{t}/passwords/{id}`: also ends the sessions that logged in with the password. */
export function deleteTunnelPassword(deps: TunnelDeps): AnyRoute {
  const { store, tunnelPasswords, audit } = deps
  const find = createTunnelLookup(deps)
  return route({
    method: 'delete',
    path: `${TUNNEL_PATH}/passwords/{id}`,
    on: ['shared'],
    id: 'deleteTunnelPassword',
    summary: 'Revoke a temporary password; sessions that logged in with it end.',
    conditional: true,
    params: PasswordParams,
    replies: { 200: z.object({}) },
    async handle({ principal, params, ifMatch, requestId, sourceIp }) {
      const { tunnel } = await find(principal, params, DELETE_NEEDS)
      const password = tunnelPasswords.byUid(params.id.toLowerCase())
      const isOfTunnel =
        password?.metadata.namespace === tunnel.metadata.namespace && password?.spec.tunnelRef.name === tunnel.metadata.name
      if (!password || !isOfTunnel) throw new ApiError('not_found', 'this tunnel has no password with this id')
      if (await requestDeletion(store, TunnelPassword, password, ifMatch)) {
        await audit.record({ principal, requestId, sourceIp, action: 'delete', before: password })
      }
      await untilGone(tunnelPasswords, password)
      return { status: 200, data: {} }
    },
  })
}

const PREFIX = 'mt_'
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const LENGTH = 32

const PasswordView = z
  .object({
    id: z.uuid(),
    password: z.string().optional().describe('Only in the answer to the creation.'),
    expiresAt: z.iso.datetime(),
    createdAt: z.iso.datetime(),
    createdBy: z.string().nullable(),
  })
  .meta({ id: 'TunnelPassword' })

export function passwordView(password: TunnelPassword): z.output<typeof PasswordView> {
  const { metadata } = password
  return {
    id: metadata.uid,
    expiresAt: new Date(endOfPassword(password)).toISOString(),
    createdAt: createdAtOf(metadata),
    createdBy: metadata.annotations?.[annotations.createdBy] ?? null,
  }
}

interface LiveDeps {
  readonly tunnelPasswords: Cache<typeof TunnelPassword>
  readonly now: () => Date
}

/** Creates the lookups of a tunnel's passwords, oldest first: all that have not expired, and those of them that the edge accepts. */
export function createPasswordLookup({ tunnelPasswords, now }: LiveDeps) {
  function allOf(tunnel: Tunnel): readonly TunnelPassword[] {
    const { namespace } = tunnel.metadata
    return passwordsOf(tunnel, tunnelPasswords.list(namespace === undefined ? {} : { namespace }))
  }
  return {
    lastingPasswordsOf: (tunnel: Tunnel) => allOf(tunnel).filter((password) => endOfPassword(password) > now().getTime()),
    livePasswordsOf: (tunnel: Tunnel) => livePasswords(allOf(tunnel), endOfPassword, now().getTime()),
  }
}

/** Creates a password: `mt_` and 32 base62 characters, some 190 bits. */
export function randomTunnelPassword(): string {
  return PREFIX + Array.from({ length: LENGTH }, () => BASE62[randomInt(BASE62.length)]).join('')
}

/** Derives a password from `salt` and the installation's secret, so that a repeated request gets the same password again. */
export function deriveTunnelPassword(secret: Uint8Array, salt: string): string {
  const bytes = createHmac('sha512', secret).update(`tunnel-password:${salt}`).digest()
  // 256 is not a multiple of 62, so the first characters are slightly more frequent: 189 of the 190 bits remain.
  return PREFIX + Array.from(bytes.subarray(0, LENGTH), (byte) => BASE62[byte % BASE62.length]).join('')
}

const sha256Of = (password: string): string => createHash('sha256').update(password).digest('hex')
