import { z } from 'zod'
import type { Region } from '../../crds/region.ts'
import type { Tunnel } from '../../crds/tunnel.ts'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import type { TunnelPassword } from '../../crds/tunnel-password.ts'
import type { JournalReader } from '../../journal/port.ts'
import type { Cache } from '../../store/cache.ts'
import type { Store } from '../../store/port.ts'
import type { Audit } from '../journal/audit.ts'
import { createCreationQuota, type Quota } from '../resources/creations.ts'
import type { Principal, Reply, Scope } from '../http/route.ts'
import type { Scopes } from '../auth/scope.ts'
import { createTunnelHeaders, type TunnelHeaders } from './header-values.ts'
import { TunnelView, tunnelView, type Presence } from './tunnel-view.ts'
import { MooringError } from '../../shared/errors.ts'
import { JOURNAL_UNAVAILABLE } from '../http/errors.ts'
import { rejectOnAbort, withinBudget } from '../resources/cache-waits.ts'

/** Dependencies that the process provides. */
export interface TunnelWiring {
  readonly store: Store
  readonly scopes: Scopes
  readonly regions: Cache<typeof Region>
  readonly endpoints: Cache<typeof TunnelEndpoint>
  readonly tunnels: Cache<typeof Tunnel>
  readonly tunnelPasswords: Cache<typeof TunnelPassword>
  readonly journal: Pick<JournalReader, 'presence'>
  readonly audit: Audit
  readonly tokenSecret: Uint8Array
  readonly tunnelsPerNamespace: number
  readonly now: () => Date
}

/** Dependencies of the tunnel routes. */
export interface TunnelDeps extends TunnelWiring {
  readonly quota: Quota
  readonly headers: TunnelHeaders
  readonly presenceOf: PresenceOf
  readonly show: (tunnels: readonly Tunnel[], to: TunnelReader) => Promise<readonly TunnelView[]>
  readonly answer: (status: 200 | 201, tunnel: Tunnel, to: TunnelReader) => Promise<Reply<{ readonly tunnel: TunnelView }>>
}

/** Caller who reads tunnels of a namespace. */
export interface TunnelReader {
  readonly principal: Principal
  readonly scope: Scope
}

export const TUNNELS_PER_NAMESPACE = 50
export const TunnelData = z.object({ tunnel: TunnelView })

export function createTunnelDeps(wiring: TunnelWiring): TunnelDeps {
  const { tunnels, endpoints, scopes, tunnelsPerNamespace: max } = wiring
  const presenceOf = createPresenceLookup(wiring)
  const headers = createTunnelHeaders(wiring.store)

  async function show(shown: readonly Tunnel[], { principal, scope }: TunnelReader): Promise<readonly TunnelView[]> {
    const { organization, slug } = scope
    const [presenceIn, readsSecrets] = await Promise.all([
      presenceOf(shown),
      scopes.may(principal, { verb: 'get', resource: 'secrets', namespace: scope.namespace }),
    ])
    const read = readsSecrets ? await Promise.all(shown.map(headers.withValues)) : shown
    return read.map((tunnel) =>
      tunnelView(tunnel, {
        organization,
        namespace: slug,
        readsSecrets,
        endpoint: tunnel.status?.endpointRef && endpoints.get({ name: tunnel.status.endpointRef.name }),
        presence: presenceIn(tunnel),
      }),
    )
  }

  async function answer(status: 200 | 201, tunnel: Tunnel, to: TunnelReader) {
    const [view] = await show([tunnel], to)
    if (!view) throw new Error('the view of the tunnel is missing')
    return { status, data: { tunnel: view }, etag: tunnel.metadata.resourceVersion }
  }

  return { ...wiring, quota: createCreationQuota({ cache: tunnels, max, what: 'tunnels' }), headers, presenceOf, show, answer }
}

export interface PresenceLookupDeps {
  readonly journal: Pick<JournalReader, 'presence'>
  /** Maximum wait of an answer for the journal, in milliseconds. */
  readonly waitMs?: number
}

/** Default of `waitMs`. */
const PRESENCE_WAIT_MS = 1_000

/** Reads the presence of several tunnels and returns the lookup for each. */
type PresenceOf = (tunnels: readonly Tunnel[]) => Promise<(tunnel: Tunnel) => Presence>

/**
 * Creates the lookup of connected sessions. It reads the journal, which is current; while the journal is unavailable, it uses the tunnel's status,
 * which is some seconds old, so that requests about tunnels do not fail.
 */
export function createPresenceLookup({ journal, waitMs = PRESENCE_WAIT_MS }: PresenceLookupDeps): PresenceOf {
  async function known(tunnels: readonly Tunnel[]): Promise<ReadonlyMap<string, Presence> | undefined> {
    try {
      return await withinBudget(waitMs, (signal) =>
        Promise.race([journal.presence(tunnels.map(({ metadata }) => metadata.uid)), rejectOnAbort(signal)]),
      )
    } catch (error) {
      if (error instanceof MooringError && JOURNAL_UNAVAILABLE.has(error.code)) return undefined
      throw error
    }
  }

  return async function presenceOf(tunnels) {
    const found = tunnels.length === 0 ? new Map<string, Presence>() : await known(tunnels)
    return (tunnel) => (found ? (found.get(tunnel.metadata.uid) ?? NOT_CONNECTED) : presenceInStatus(tunnel))
  }
}

const NOT_CONNECTED: Presence = { sessions: 0, lastConnectedAt: undefined }

function presenceInStatus({ status }: Tunnel): Presence {
  const at = status?.lastConnectedAt
  return { sessions: status?.sessions ?? 0, lastConnectedAt: at === undefined ? undefined : Date.parse(at) }
}
