import { tunnelNamedBy } from '../../crds/live-passwords.ts'
import type { Tunnel } from '../../crds/tunnel.ts'
import { PasswordReason, type TunnelPassword } from '../../crds/tunnel-password.ts'
import { conditionOf } from '../../store/conditions.ts'
import { keyToString } from '../../store/key-string.ts'

const listed = (value: string | undefined): readonly string[] => (value === undefined ? [] : [value])

/** What tunnels are found by. */
export const tunnelIndexes = {
  endpoint: ({ status }: Tunnel) => listed(status?.endpointRef?.name),
  hostname: ({ status }: Tunnel) => listed(status?.hostname),
  /** `regionId` of one that has no endpoint yet. */
  waiting: ({ spec, status }: Tunnel) => (status?.endpointRef ? [] : [String(spec.regionId)]),
}

/** What passwords are found by. */
export const passwordIndexes = {
  tunnel: (password: TunnelPassword) => [keyToString(tunnelNamedBy(password))],
  /** Namespace of one that waits for an older one to end. */
  tooMany: (password: TunnelPassword) =>
    conditionOf(password, 'Ready')?.reason === PasswordReason.TooManyPasswords ? listed(password.metadata.namespace) : [],
}
