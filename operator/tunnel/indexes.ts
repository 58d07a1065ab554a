import { ownerNamedBy, ownerText } from '../../shared/live-passwords.ts'
import { type Tunnel, TunnelReason } from '../../crds/tunnel.ts'
import { PasswordReason, type TunnelPassword } from '../../crds/tunnel-password.ts'
import { conditionOf } from '../../store/conditions.ts'
import { hasReferences } from './header-values.ts'
import { isOverQuota, quotaIndexes } from '../quota/quota.ts'

const listed = (value: string | undefined): readonly string[] => (value === undefined ? [] : [value])

/** Whether a tunnel has a hostname, which its quota limits: from then on it is permanent. */
export const hasHostname = ({ status }: Tunnel): boolean => status?.hostname !== undefined

const isOver = isOverQuota(TunnelReason.QuotaExceeded)
const isRefused = (tunnel: Tunnel): boolean => conditionOf(tunnel, 'Ready')?.reason === TunnelReason.NoAccess

/** Indexes of the cache of tunnels. */
export const tunnelIndexes = {
  ...quotaIndexes({ hasBegun: hasHostname, reason: TunnelReason.QuotaExceeded }),
  endpoint: ({ status }: Tunnel) => listed(status?.endpointRef?.name),
  hostname: ({ status }: Tunnel) => listed(status?.hostname),
  /** Tunnels with header values from Secrets. */
  headers: (tunnel: Tunnel) => (hasReferences(tunnel) ? ['yes'] : []),
  /** Tunnels whose status says that clients are connected. */
  connected: ({ status }: Tunnel) => (status?.connected === true || (status?.sessions ?? 0) > 0 ? ['yes'] : []),
  /** `regionId` of a tunnel that has no endpoint yet, is within its quota and in a tenant's Namespace. */
  waiting: (tunnel: Tunnel) =>
    tunnel.status?.endpointRef || isOver(tunnel) || isRefused(tunnel) ? [] : [String(tunnel.spec.regionId)],
}

/** Indexes of the cache of tunnel passwords. */
export const passwordIndexes = {
  /** Tunnel or database that a password names. */
  owner: (password: TunnelPassword) => [ownerText(ownerNamedBy(password))],
  /** Namespace of a password that waits until an older one ends. */
  tooMany: (password: TunnelPassword) =>
    conditionOf(password, 'Ready')?.reason === PasswordReason.TooManyPasswords ? listed(password.metadata.namespace) : [],
}
