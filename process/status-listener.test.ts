import { get } from 'node:http'
import { networkInterfaces } from 'node:os'
import { open } from 'node:fs/promises'
import { Counter, Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { startStatus, registerProcessMetrics } from './status-listener.ts'
import { PROGRAM_VERSION } from './version.ts'

test('the status listener serves metrics, health and readiness, and nothing else', async () => {
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

test('the error for a used port names the flag to change', async () => {
  const registry = new Registry()
  await using first = await startStatus({ registry, host: '127.0.0.1', port: 'auto' })
  const port = Number(new URL(first.metricsUrl).port)
  await expect(startStatus({ registry, host: '127.0.0.1', port })).rejects.toMatchObject({
    code: 'port_in_use',
    message: expect.stringContaining('--metrics-port') as string,
  })
})

/** Status of `/metrics` for a request with this `Host`, which fetch would not send. */
function statusFor(url: string, host: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    get(url, { headers: { host } }, (res) => resolve(res.resume().statusCode)).on('error', reject)
  })
}

test('a listener on loopback rejects a Host of another machine', async () => {
  await using listener = await startStatus({ registry: new Registry(), host: '127.0.0.1', port: 'auto' })
  expect(await statusFor(listener.metricsUrl, 'evil.example')).toBe(421)
  expect(await statusFor(listener.metricsUrl, 'localhost:9464')).toBe(200)
})

test('a listener on all addresses accepts the Host of a pod probe', async () => {
  await using listener = await startStatus({ registry: new Registry(), host: '0.0.0.0', port: 'auto' })
  const [address = '127.0.0.1'] = Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .flatMap(({ internal, family, address }) => (!internal && family === 'IPv4' ? [address] : []))
  expect(await statusFor(listener.metricsUrl.replace('0.0.0.0', address), `${address}:9464`)).toBe(200)
  expect(await statusFor(listener.metricsUrl, 'mooring-apiserver.mooring-system.svc:9464')).toBe(200)
})

async function valuesOf(registry: Registry): Promise<Readonly<Record<string, number>>> {
  const lines = (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return Object.fromEntries(lines.map((line) => [line.split(' ')[0] ?? '', Number(line.split(' ')[1])]))
}

test('process metrics report version, CPU time, memory, open files and start time', async () => {
  const registry = new Registry()
  registerProcessMetrics(registry)
  const before = await valuesOf(registry)
  expect(before[`mooring_build_info{version="${PROGRAM_VERSION}"}`]).toBe(1)
  expect(before.process_resident_memory_bytes).toBeGreaterThan(10_000_000)
  expect(Math.abs((before.process_start_time_seconds ?? 0) - (Date.now() / 1e3 - process.uptime()))).toBeLessThan(2)
  expect(before.process_max_fds).toBeGreaterThan(before.process_open_fds ?? Infinity)
  await using files = new AsyncDisposableStack()
  for (let opened = 0; opened < 20; opened++) files.use(await open('/dev/null'))
  const after = await valuesOf(registry)
  expect(after.process_open_fds).toBeGreaterThan((before.process_open_fds ?? Infinity) + 10)
  expect(after.process_cpu_seconds_total).toBeGreaterThanOrEqual(before.process_cpu_seconds_total ?? Infinity)
})
