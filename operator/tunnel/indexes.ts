import { tunnelNamedBy } from '../../shared/live-passwords.ts'
import { type Tunnel, TunnelReason } from '../../crds/tunnel.ts'
import { PasswordReason, type TunnelPassword } from '../../crds/tunnel-password.ts'
import { conditionOf } from '../../store/conditions.ts'
import { keyToString } from '../../store/key-string.ts'
import { isOverQuota, quotaIndexes } from '../quota/indexes.ts'

const listed = (value: string | undefined): readonly string[] => (value === undefined ? [] : [value])

/** What its quota is about: from then on it is a tunnel for life. */
export const hasHostname = ({ status }: Tunnel): boolean => status?.hostname !== undefined

const isOver = isOverQuota(TunnelReason.QuotaExceeded)

/** What tunnels are found by. */
export const tunnelIndexes = {
  ...quotaIndexes({ hasBegun: hasHostname, reason: TunnelReason.QuotaExceeded }),
  endpoint: ({ status }: Tunnel) => listed(status?.endpointRef?.name),
  hostname: ({ status }: Tunnel) => listed(status?.hostname),
  /** Those whose status says that somebody is connected. */
  connected: ({ status }: Tunnel) => (status?.connected === true || (status?.sessions ?? 0) > 0 ? ['yes'] : []),
  /** `regionId` of one that has no endpoint yet, and waits for nothing else. */
  waiting: (tunnel: Tunnel) => (tunnel.status?.endpointRef || isOver(tunnel) ? [] : [String(tunnel.spec.regionId)]),
}

/** What passwords are found by. */
export const passwordIndexes = {
  tunnel: (password: TunnelPassword) => [keyToString(tunnelNamedBy(password))],
  /** Namespace of one that waits for an older one to end. */
  tooMany: (password: TunnelPassword) =>
    conditionOf(password, 'Ready')?.reason === PasswordReason.TooManyPasswords ? listed(password.metadata.namespace) : [],
}
