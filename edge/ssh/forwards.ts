import { isTargetAllowed } from '../../crds/tunnel-config.ts'
import { type ReachedTunnel, sentences } from './sentences.ts'

/** A forward that a client asks for, as it spells it (RFC 4254, section 7.1). */
export interface Forward {
  readonly host: string
  readonly port: number
}

/** The public port that a client names; what is behind it the edge decides. */
const PORT = 80
/** Names that say "whatever is mine": what stock clients send where their user names none, or any. */
const OWN = ['', 'localhost', '*']

/** Why a forward is refused, in a sentence; undefined when it may be. */
export function forwardRefusal(wanted: Forward, tunnel: ReachedTunnel): string | undefined {
  const { route } = tunnel
  const host = wanted.host.toLowerCase()
  if (!OWN.includes(host) && host !== route.hostname && host !== route.host.toLowerCase())
    return sentences.otherHost(wanted.host, tunnel)
  if (wanted.port !== PORT) return sentences.otherPort(wanted.port, tunnel)
  return isTargetAllowed(route.config) ? undefined : sentences.otherTarget
}
