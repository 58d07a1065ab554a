import { Counter, Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { startStatus } from './status-listener.ts'

test('metrics, health and readiness are told, and nothing else', async () => {
  const registry = new Registry()
  new Counter({ name: 'things_total', help: 'Things.', registers: [registry] })
  let ready = false
  await using listener = await startStatus({ registry, host: '127.0.0.1', port: 'auto', isReady: () => ready })
  const statusOf = async (path: string) => (await fetch(new URL(path, listener.metricsUrl))).status
  expect(await (await fetch(listener.metricsUrl)).text()).toContain('things_total 0')
  expect([await statusOf('/healthz'), await statusOf('/readyz'), await statusOf('/else')]).toEqual([200, 503, 404])
  ready = true
  expect(await statusOf('/readyz')).toBe(200)
})

test('a port that is taken is told with the flag to change', async () => {
  const registry = new Registry()
  await using first = await startStatus({ registry, host: '127.0.0.1', port: 'auto' })
  const port = Number(new URL(first.metricsUrl).port)
  await expect(startStatus({ registry, host: '127.0.0.1', port })).rejects.toMatchObject({
    code: 'port_in_use',
    message: expect.stringContaining('--metrics-port') as string,
  })
})
