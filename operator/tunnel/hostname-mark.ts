import { timingSafeEqual } from 'node:crypto'
import { annotations } from '../../crds/names.ts'
import { HOSTNAME } from '../../crds/tunnel.ts'
import type { Key } from '../../store/port.ts'

/** MAC of this installation for a text: base64url, without padding. */
export type Mac = (text: string) => string

/** Tunnel's key and annotations. */
interface Marked extends Key {
  readonly annotations?: Readonly<Record<string, string>>
}

/**
 * Value of the annotation `mooring.dev/hostname`, `{hostname}.{MAC}`, by which a tunnel restored from a backup keeps its hostname. It is
 * valid only for this namespace and name, with any uid: a copy on another tunnel has no effect.
 */
export function hostnameMark(mac: Mac, tunnel: Key, hostname: string): string {
  return `${hostname}.${mac(claimOf(tunnel, hostname))}`
}

/** Hostname of a mark; undefined when the mark was not made for this tunnel by this installation. */
export function markedHostname(mac: Mac, tunnel: Marked): string | undefined {
  const mark = tunnel.annotations?.[annotations.hostname] ?? ''
  const [hostname = ''] = mark.split('.')
  if (!HOSTNAME.test(hostname)) return undefined
  return isSame(mark, hostnameMark(mac, tunnel, hostname)) ? hostname : undefined
}

/** Authenticated text. Its first element separates it from other texts authenticated with the same key. */
const claimOf = ({ namespace = '', name }: Key, hostname: string): string =>
  JSON.stringify(['hostname of a tunnel', namespace, name, hostname])

function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}
