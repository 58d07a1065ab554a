import { z } from 'zod'
import type { TunnelWebhook } from '../../crds/tunnel-webhook.ts'
import type { Tunnel } from '../../crds/tunnel.ts'
import type { DeliveryLog } from '../../journal/webhooks.ts'
import { WEBHOOKS_MAX, webhooksOf } from '../../shared/active-webhooks.ts'
import type { AddressGuard } from '../../shared/outside-addresses.ts'
import { createWebhookSecrets, type WebhookSecrets } from '../../shared/webhook-secrets.ts'
import type { Cache } from '../../store/cache.ts'
import type { Store } from '../../store/port.ts'
import type { Scopes } from '../auth/scope.ts'
import { ApiError } from '../http/errors.ts'
import type { Principal, Scope } from '../http/route.ts'
import type { Audit } from '../journal/audit.ts'
import { createCreationQuota, type Quota } from '../resources/creations.ts'
import { idParam } from '../tenancy/tenancy-deps.ts'
import { createTunnelLookup, TUNNEL_PATH, type TunnelNeed, TunnelParams } from '../tunnels/tunnel-lookup.ts'

export const WEBHOOKS_PATH = `${TUNNEL_PATH}/webhooks`
export const WEBHOOK_PATH = `${WEBHOOKS_PATH}/{webhook}`
export const WebhookParams = z.object({ ...TunnelParams.shape, webhook: idParam('Id of the webhook.') })

/** Dependencies that the process provides. */
export interface WebhookWiring {
  readonly store: Store
  readonly scopes: Scopes
  readonly tunnels: Cache<typeof Tunnel>
  readonly tunnelWebhooks: Cache<typeof TunnelWebhook>
  readonly journal: { readonly webhooks: DeliveryLog }
  readonly addressGuard: AddressGuard
  readonly audit: Audit
  readonly tokenSecret: Uint8Array
  readonly now: () => Date
}

/** Tunnel of a request. */
export interface FoundTunnel {
  readonly tunnel: Tunnel
  readonly scope: Scope
}

/** Webhook of a request, with its tunnel. */
export interface FoundWebhook extends FoundTunnel {
  readonly webhook: TunnelWebhook
}

interface Path {
  readonly organization: string
  readonly namespace: string
  readonly tunnel: string
}

/** Dependencies of the webhook routes. */
export interface WebhookDeps extends WebhookWiring {
  readonly secrets: WebhookSecrets
  /** Quota of webhooks per tunnel. Its key `namespace` is the uid of the tunnel. */
  readonly quota: Quota
  /** Returns the webhooks of a tunnel, oldest first. */
  readonly webhooksOf: (tunnel: Tunnel) => readonly TunnelWebhook[]
  /** Finds the tunnel of a path. @throws ApiError `not_found`, `forbidden` */
  readonly findTunnel: (principal: Principal, params: Path, verb: TunnelNeed['verb']) => Promise<FoundTunnel>
  /** Finds the webhook of a path. @throws ApiError `not_found`, `forbidden` */
  readonly find: (
    principal: Principal,
    params: Path & { readonly webhook: string },
    verb: TunnelNeed['verb'],
  ) => Promise<FoundWebhook>
  /** Whether a caller has the right to read secrets of a namespace, and with them URLs and responses of receivers. */
  readonly readsSecrets: (principal: Principal, scope: Scope) => Promise<boolean>
}

export function createWebhookDeps(wiring: WebhookWiring): WebhookDeps {
  const { tunnels, tunnelWebhooks, tokenSecret, scopes } = wiring
  const lookUp = createTunnelLookup(wiring)

  function ofTunnel(tunnel: Tunnel): readonly TunnelWebhook[] {
    const { namespace } = tunnel.metadata
    return webhooksOf(tunnel, tunnelWebhooks.list(namespace === undefined ? {} : { namespace }))
  }

  const findTunnel: WebhookDeps['findTunnel'] = (principal, params, verb) =>
    lookUp(principal, params, [{ verb, resource: 'tunnelwebhooks' }])

  return {
    ...wiring,
    secrets: createWebhookSecrets(tokenSecret),
    quota: createCreationQuota<typeof TunnelWebhook>({
      max: WEBHOOKS_MAX,
      of: 'tunnel',
      what: 'webhooks',
      cache: {
        list({ namespace: uid = '' } = {}) {
          const tunnel = tunnels.byUid(uid)
          return tunnel ? ofTunnel(tunnel) : []
        },
      },
    }),
    webhooksOf: ofTunnel,
    findTunnel,
    readsSecrets: (principal, { namespace }) => scopes.may(principal, { verb: 'get', resource: 'secrets', namespace }),
    async find(principal, params, verb) {
      const found = await findTunnel(principal, params, verb)
      const webhook = ofTunnel(found.tunnel).find(({ metadata }) => metadata.uid === params.webhook.toLowerCase())
      if (!webhook) throw new ApiError('not_found', 'this tunnel has no webhook with this id')
      return { ...found, webhook }
    },
  }
}
