import { isTargetAllowed } from '../../crds/tunnel-config.ts'
import { type ReachedTunnel, sentences } from './sentences.ts'

/** Forward that a client requests, with its spelling (RFC 4254, section 7.1). */
export interface Forward {
  readonly host: string
  readonly port: number
}

/** Port that a client must request; the edge maps public ports to it. */
const PORT = 80
/** Hosts that mean any address: stock clients send them when the user names none. */
const OWN = ['', 'localhost', '*']

/** Returns the sentence for a rejected forward; undefined when it is accepted. */
export function forwardRefusal(wanted: Forward, tunnel: ReachedTunnel): string | undefined {
  const { route } = tunnel
  const host = wanted.host.toLowerCase()
  if (!OWN.includes(host) && host !== route.hostname && host !== route.host.toLowerCase())
    return sentences.otherHost(wanted.host, tunnel)
  if (wanted.port !== PORT) return sentences.otherPort(wanted.port, tunnel)
  return isTargetAllowed(route.config) ? undefined : sentences.otherTarget
}
