import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Statuses by the beginning of the path; every other path is answered with 200. */
const STATUSES: readonly (readonly [prefix: string, status: number])[] = [
  ['/cart/old', 301],
  ['/images', 304],
  ['/admin', 403],
  ['/.env', 404],
  ['/checkout/fail', 500],
]

/** Starts a web server whose answers have various statuses and sizes, for a request log to look at. */
export async function startShopServer(): Promise<AsyncDisposable & { readonly port: number }> {
  const server = createServer((req, res) => {
    const status = STATUSES.find(([prefix]) => req.url?.startsWith(prefix))?.[1] ?? 200
    res.writeHead(status).end(status === 304 ? undefined : 'x'.repeat((req.url?.length ?? 1) * 321))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
