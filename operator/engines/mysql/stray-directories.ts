import { readdir, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { sleep } from '../../../shared/timers.ts'
import { kindOf, requestedBy, requestFor } from './catalog.ts'

/*
 * MySQL 8.0 creates the directory of a database before the entry in its dictionary, and removes the directory after the entry. A kill in
 * between leaves a stray directory, which belongs to no database. The server then rejects both CREATE DATABASE and DROP DATABASE of that name,
 * and no statement removes the directory. So the operator makes a request: it creates an empty database `stray_{name}`, whose directory appears
 * beside the stray one. A loop beside the server finds the request, and removes both directories if they are empty. The operator repeats its
 * change until it succeeds, and drops `stray_{name}`.
 */

/** Interval of the loop, in seconds. */
const EVERY_S = 1

/** Serves the present requests in a data directory: removes each stray directory, then the directory of its request. */
export async function removeStrayDirectories(data: string): Promise<void> {
  for (const request of (await readdir(data)).filter((name) => kindOf(name) === 'request')) {
    // The directory may be gone, or belong to a database with tables.
    await rmdir(join(data, requestedBy(request))).catch(() => undefined)
    await rmdir(join(data, request)).catch(() => undefined)
  }
}

/** Serves requests until the signal aborts. Never rejects. */
export async function serveRequests(data: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await removeStrayDirectories(data).catch(() => undefined)
    await sleep(EVERY_S * 1000, signal)
  }
}

/** Lines of a shell script that serve requests in the background, for a server whose data only its own container mounts. */
export const serveRequestsScript = (data: string): string => `while sleep ${EVERY_S}; do
  for request in ${data}/${requestFor('')}*/; do
    request=\${request%/}
    if [ -d "$request" ]; then rmdir "${data}/\${request#${data}/${requestFor('')}}" "$request"; fi
  done
done 2>/dev/null &
`
