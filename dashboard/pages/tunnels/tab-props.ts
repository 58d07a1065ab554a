import type { Access } from '../../access.ts'
import type { Tunnel } from '../../api/types.ts'
import type { Loaded } from '../../parts/use-data.ts'

/** Props of each tab of a tunnel's page. */
export interface TunnelTabProps {
  readonly access: Access
  readonly tunnel: Tunnel
  readonly loaded: Loaded<{ tunnel: Tunnel }>
}
