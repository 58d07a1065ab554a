import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Request as {@link startLocalServer} received it, in the body of its response. */
export interface Seen {
  readonly url: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
}

/** Starts a web server that responds with the request it received, and with a header `X-Secret`. */
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
