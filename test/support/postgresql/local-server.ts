import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What {@link startLocalServer} answers with. */
export interface Seen {
  readonly url: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
}

/** A web server on somebody's machine, which answers with the request that it saw, and with a header `X-Secret`. */
export async function startLocalServer(): Promise<AsyncDisposable & { readonly port: number }> {
  const server = createServer((req, res) => {
    res.setHeader('X-Secret', 'inside')
    res.end(JSON.stringify({ url: req.url, method: req.method, headers: req.headers }))
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
