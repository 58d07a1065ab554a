import type { Socket } from 'node:net'
import type { TunnelConfig } from '../../../crds/tunnel-config.ts'
import { freshHostname } from './ssh-edge.ts'
import { http2Client, type Http2Client } from './http2-client.ts'
import type { startProxy } from './proxy-fixture.ts'
import { rawBackend } from './raw-http.ts'

/** Starts a tunnel to a backend with the test's responses, and an HTTP/2 visitor that connects at its first request. */
export async function tunnelBefore(
  edge: Awaited<ReturnType<typeof startProxy>>,
  answer: (received: string, socket: Socket) => void,
  config: Partial<TunnelConfig> = {},
) {
  const cleanup = new AsyncDisposableStack()
  const backend = cleanup.use(await rawBackend(answer))
  const { hostname, host } = edge.serve(freshHostname(), backend.port, config)
  let visitor: Http2Client | undefined
  return {
    hostname,
    host,
    received: backend.received,
    get visitor() {
      return (visitor ??= cleanup.use(http2Client(edge.httpsPort, host)))
    },
    [Symbol.asyncDispose]: () => cleanup.disposeAsync(),
  }
}
