import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Registry } from 'prom-client'
import { MooringError } from '../shared/errors.ts'
import { registerProcessMetrics } from './process-metrics.ts'
import { isLoopbackAddress, isLoopbackHost, wrongHost } from './loopback-host.ts'

export interface StatusDeps {
  readonly registry: Registry
  readonly host: string
  readonly port: number | 'auto'
  /** Returns whether the process is ready. Default: always. */
  readonly isReady?: () => boolean
}

/** Plain HTTP listener for metrics, health and readiness of the process. */
export interface StatusListener extends AsyncDisposable {
  readonly metricsUrl: string
}

/**
 * Serves `/metrics` (process metrics included), `/healthz` and `/readyz`. A listener on loopback answers 421 when `Host` names another
 * machine. Other listeners accept any `Host`, because kubelet and Prometheus name a pod by its address.
 * @throws MooringError `port_in_use`
 */
export async function startStatus({ registry, host, port, isReady = () => true }: StatusDeps): Promise<StatusListener> {
  const answers: Readonly<Record<string, (res: ServerResponse) => void>> = {
    '/metrics': (res) => {
      registry.metrics().then(
        (text) => res.writeHead(200, { 'Content-Type': registry.contentType }).end(text),
        () => res.writeHead(500).end(),
      )
    },
    '/healthz': (res) => res.writeHead(200).end('ok'),
    '/readyz': (res) => (isReady() ? res.writeHead(200).end('ready') : res.writeHead(503).end('not ready')),
  }
  const isLocal = isLoopbackAddress(host)
  const server = createServer((req, res) => {
    const named = req.headers.host
    if (isLocal && named !== undefined && !isLoopbackHost(named)) {
      res.writeHead(421, { 'Content-Type': 'text/plain; charset=utf-8' }).end(`${wrongHost(named)}\n`)
      return
    }
    const answer = answers[req.url ?? '']
    if (answer) answer(res)
    else res.writeHead(404).end()
  })
  await new Promise<void>((resolve, reject) => {
    // Stays registered: when the process has no free descriptor, accept() fails with an error of the server, which would end the process.
    server.on('error', (cause) => {
      const message = `port ${port} on ${host} cannot be used: choose another with --metrics-port`
      reject(new MooringError('port_in_use', message, { cause }))
    })
    server.listen(port === 'auto' ? 0 : port, host, resolve)
  })
  registerProcessMetrics(registry)
  return {
    metricsUrl: `http://${host.includes(':') ? `[${host}]` : host}:${(server.address() as AddressInfo).port}/metrics`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
