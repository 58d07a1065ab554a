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
  /** True once the process does its work; always, when absent. */
  readonly isReady?: () => boolean
}

/** A plain HTTP listener that is about the process itself. */
export interface StatusListener extends AsyncDisposable {
  readonly metricsUrl: string
}

/**
 * Serves `/metrics`, to which it adds those of the process itself, `/healthz` (the process answers) and `/readyz`. On loopback a `Host` of another machine is 421; elsewhere any is taken,
 * since kubelet and Prometheus name a pod by its address. @throws MooringError `port_in_use`
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
    // Stays on: a connection that cannot be taken (no descriptor is free) is an error of the server, and would end the process.
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
