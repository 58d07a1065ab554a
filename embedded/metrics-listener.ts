import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Registry } from 'prom-client'
import { MooringError } from '../crds/errors.ts'

/** Serves the metrics on loopback. @returns their URL @throws MooringError `port_in_use` */
export async function startMetrics(registry: Registry, port: number | 'auto', cleanup: AsyncDisposableStack): Promise<string> {
  const server = createServer((req, res) => {
    if (req.url !== '/metrics') {
      res.writeHead(404).end()
      return
    }
    registry.metrics().then(
      (text) => res.writeHead(200, { 'Content-Type': registry.contentType }).end(text),
      () => res.writeHead(500).end(),
    )
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => {
      reject(
        new MooringError('port_in_use', `port ${port} on 127.0.0.1 cannot be used: choose another with --metrics-port`, {
          cause,
        }),
      )
    })
    server.listen(port === 'auto' ? 0 : port, '127.0.0.1', resolve)
  })
  cleanup.defer(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`
}
