import { timingSafeEqual } from 'node:crypto'
import { annotations } from '../../crds/names.ts'
import { HOSTNAME } from '../../crds/tunnel.ts'
import type { Key } from '../../store/port.ts'

/** Authenticates a text as this installation's own: base64url, without padding. */
export type Mac = (text: string) => string

/** Its metadata, as far as it matters. */
interface Marked extends Key {
  readonly annotations?: Readonly<Record<string, string>>
}

/**
 * What annotation `mooring.dev/hostname` says of a tunnel, `{hostname}.{MAC}`, so that one restored from a backup keeps its hostname. It is
 * good for the tunnel of this namespace and name alone, of whatever uid: whoever copies it has nothing.
 */
export function hostnameMark(mac: Mac, tunnel: Key, hostname: string): string {
  return `${hostname}.${mac(claimOf(tunnel, hostname))}`
}

/** The hostname that a mark speaks of; undefined when it was not made for this tunnel by this installation. */
export function markedHostname(mac: Mac, tunnel: Marked): string | undefined {
  const mark = tunnel.annotations?.[annotations.hostname] ?? ''
  const [hostname = ''] = mark.split('.')
  if (!HOSTNAME.test(hostname)) return undefined
  return isSame(mark, hostnameMark(mac, tunnel, hostname)) ? hostname : undefined
}

/** The first word keeps it from being taken for anything else that is authenticated by the same key. */
const claimOf = ({ namespace = '', name }: Key, hostname: string): string =>
  JSON.stringify(['hostname of a tunnel', namespace, name, hostname])

function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}
