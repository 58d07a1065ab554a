import { open } from 'node:fs/promises'
import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { registerProcessMetrics } from './process-metrics.ts'
import { PROGRAM_VERSION } from './version.ts'

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
