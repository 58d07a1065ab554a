import type { Tunnel } from '../../api/types.ts'
import { Pill } from '../../parts/basics.tsx'

/** State of a tunnel, for lists and headings. */
export function TunnelState({ tunnel }: { tunnel: Pick<Tunnel, 'hostname' | 'connected' | 'sessions'> }) {
  if (tunnel.hostname === null) return <Pill tone="warn">preparing</Pill>
  if (!tunnel.connected) return <Pill tone="plain">offline</Pill>
  return (
    <Pill tone="good" live>
      {tunnel.sessions > 1 ? `connected, ${tunnel.sessions} clients` : 'connected'}
    </Pill>
  )
}

/** Returns the address of a tunnel without the scheme. */
export const addressOf = ({ directUrl, url }: Pick<Tunnel, 'directUrl' | 'url'>): string =>
  (directUrl ?? url ?? 'no hostname yet').replace(/^https:\/\//, '')
