import { randomBytes } from 'node:crypto'
import type { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import type { Tunnel } from '../../crds/tunnel.ts'
import type { Cache } from '../../store/cache.ts'

/** Owners of hostnames. Both caches have the index `hostname`. */
export interface HostnameOwners {
  readonly tunnels: Pick<Cache<typeof Tunnel>, 'countByIndex'>
  readonly databases: Pick<Cache<typeof DedicatedDatabase>, 'countByIndex'>
}

const HOSTNAME_BYTES = 8

/** Whether a tunnel or the SSH tunnel of a database has the hostname. */
export const isHostnameTaken = ({ tunnels, databases }: HostnameOwners, hostname: string): boolean =>
  tunnels.countByIndex('hostname', hostname) > 0 || databases.countByIndex('hostname', hostname) > 0

/** Draws 64 random bits that are the hostname of no tunnel and no database. */
export function drawHostname(owners: HostnameOwners): string {
  for (;;) {
    const hostname = randomBytes(HOSTNAME_BYTES).toString('hex')
    if (!isHostnameTaken(owners, hostname)) return hostname
  }
}
