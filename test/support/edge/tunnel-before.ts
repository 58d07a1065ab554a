import type { Socket } from 'node:net'
import type { TunnelConfig } from '../../../crds/tunnel-config.ts'
import { http2Client } from './http2-client.ts'
import type { startProxy } from './proxy-fixture.ts'
import { rawBackend } from './raw-http.ts'

let next = 0x10

/** A tunnel before a backend that answers as the test says, and a visitor of it who speaks HTTP/2. */
export async function tunnelBefore(
  edge: Awaited<ReturnType<typeof startProxy>>,
  answer: (received: string, socket: Socket) => void,
  config: Partial<TunnelConfig> = {},
) {
  const cleanup = new AsyncDisposableStack()
  const backend = cleanup.use(await rawBackend(answer))
  const { host } = edge.serve((next++).toString(16).padStart(16, '0'), backend.port, config)
  const visitor = cleanup.use(http2Client(edge.httpsPort, host))
  return { host, visitor, received: backend.received, [Symbol.asyncDispose]: () => cleanup.disposeAsync() }
}
