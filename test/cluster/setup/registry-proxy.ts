import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'

/** Proxy to one host and port, for a network without a route to others. */
export interface RegistryProxy extends AsyncDisposable {
  /** Value of npm's setting `https-proxy`. */
  readonly url: string
}

/**
 * Starts an HTTP proxy (RFC 9110, section 9.3.6: CONNECT) on `address` that connects only to `registry`. Images are built in a
 * network without a route to other networks and get their packages over this proxy.
 */
export async function startRegistryProxy(address: string, registry: URL): Promise<RegistryProxy> {
  const target = { host: registry.hostname, port: Number(registry.port || '443') }
  const allowed = `${target.host}:${target.port}`
  const open = new Set<Socket>()
  const server = createServer((_, res) => res.writeHead(405).end())
  server.on('connect', (req: IncomingMessage, client: Socket) => {
    if (req.url !== allowed) {
      client.end('HTTP/1.1 403 Forbidden\r\n\r\n')
      return
    }
    const upstream = connect(target, () => {
      client.write('HTTP/1.1 200 Connection Established\r\n\r\n')
      client.pipe(upstream).pipe(client)
    })
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(socket)
      socket.on('error', () => other.destroy())
      socket.on('close', () => {
        open.delete(socket)
        other.destroy()
      })
    }
  })
  server.listen(0, address)
  await once(server, 'listening')
  const bound = server.address()
  if (bound === null || typeof bound === 'string') throw new Error('a listening server has an address')

  return {
    url: `http://${address}:${bound.port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
