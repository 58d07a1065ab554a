import { z } from 'zod'
import { ownerReferenceTo } from '../../../crds/kind.ts'
import { Tunnel } from '../../../crds/tunnel.ts'
import { ApiError } from '../../http/errors.ts'
import { page, PageQuery, resourceKey } from '../../http/paging.ts'
import { type AnyRoute, route } from '../../http/route.ts'
import { rejectWhenDeleted } from '../../resources/cache-waits.ts'
import { idParam, listOf } from '../../tenancy/tenancy-deps.ts'
import { createSshPasswords, PasswordView, passwordView, type SshPasswords } from '../ssh-passwords.ts'
import type { TunnelDeps } from '../tunnel-deps.ts'
import { createTunnelLookup, requireTunnelNotDeleting, TUNNEL_PATH, TunnelParams } from '../tunnel-lookup.ts'

const LIST_NEEDS = [{ verb: 'list', resource: 'tunnelpasswords' }] as const

/** Creates the passwords of tunnels. */
function passwordsOfTunnels(deps: TunnelDeps): SshPasswords<Tunnel> {
  const { tunnels } = deps
  return createSshPasswords<Tunnel>({
    ...deps,
    what: 'tunnel',
    byUid: (uid) => tunnels.byUid(uid),
    referTo: (tunnel) => ({
      spec: { tunnelRef: { name: tunnel.metadata.name } },
      owner: ownerReferenceTo(Tunnel, tunnel),
    }),
    whenDeleted: (tunnel) => rejectWhenDeleted(tunnels, tunnel, 'the tunnel was deleted meanwhile'),
  })
}

/** `GET …/tunnels/{t}/passwords`: without the passwords, which are not stored. */
export function listTunnelPasswords(deps: TunnelDeps): AnyRoute {
  const passwords = passwordsOfTunnels(deps)
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
      const { items, nextCursor } = page(passwords.live(tunnel), query, resourceKey)
      return { status: 200, data: { passwords: items.map(passwordView), nextCursor } }
    },
  })
}

const CREATE_NEEDS = [{ verb: 'create', resource: 'tunnelpasswords' }] as const

/** `POST …/tunnels/{t}/passwords`: only this answer, and its repetition with the same Idempotency-Key, contains the password. */
export function createTunnelPassword(deps: TunnelDeps): AnyRoute {
  const passwords = passwordsOfTunnels(deps)
  const find = createTunnelLookup(deps)
  return route({
    method: 'post',
    path: `${TUNNEL_PATH}/passwords`,
    on: ['shared'],
    id: 'createTunnelPassword',
    summary: 'Issue a temporary password for SSH logins to a tunnel; it is valid for 4 hours.',
    params: TunnelParams,
    idempotent: true,
    replies: { 201: z.object({ password: PasswordView }) },
    async handle(request) {
      const { tunnel } = await find(request.principal, request.params, CREATE_NEEDS)
      requireTunnelNotDeleting(tunnel)
      requirePasswordLogin(tunnel)
      return passwords.issue(tunnel, request)
    },
  })
}

/** Checks that the tunnel accepts passwords. @throws ApiError `conflict` */
function requirePasswordLogin({ spec }: Tunnel): void {
  if (spec.config.authMode !== 'key') return
  const fix = 'PATCH it with {"config":{"authMode":"both"}} first, or log in with a key of authorizedKeys'
  throw new ApiError('conflict', `authMode of this tunnel is key, so that it takes no passwords; ${fix}`)
}

const DELETE_NEEDS = [{ verb: 'delete', resource: 'tunnelpasswords' }] as const
const PasswordParams = z.object({ ...TunnelParams.shape, id: idParam('Id of the password.') })

/** `DELETE …/tunnels/{t}/passwords/{id}`: also ends the sessions that logged in with the password. */
export function deleteTunnelPassword(deps: TunnelDeps): AnyRoute {
  const passwords = passwordsOfTunnels(deps)
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
    async handle(request) {
      const { tunnel } = await find(request.principal, request.params, DELETE_NEEDS)
      await passwords.revoke(tunnel, request.params.id, request)
      return { status: 200, data: {} }
    },
  })
}
