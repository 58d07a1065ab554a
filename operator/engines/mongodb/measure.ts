import { z } from 'zod'
import type { Measured } from '../engine.ts'
import { readSizes } from './catalog.ts'
import type { Connection } from './connection.ts'
import { countConnectionsOf } from './sessions.ts'

/** The driver returns a 64-bit integer as a number where it is safe, else as a Long. */
const Count = z.unknown().transform(Number).pipe(z.number())

/** Operations of one kind, with their number by latency: each bucket begins at `micros` and ends at the next one. */
const Latencies = z.object({ ops: Count, histogram: z.array(z.object({ micros: Count, count: Count })).default([]) })

const ServerStatus = z.object({
  opLatencies: z.object({ reads: Latencies, writes: Latencies }),
  wiredTiger: z.object({
    cache: z.object({ 'pages requested from the cache': Count, 'pages read into cache': Count }),
  }),
})

/** Begin of the first bucket of slow operations: 2^20 µs, 1.05 s. */
const SLOW_MICROS = 1_048_576

/** Measures the server of one tenant: reads and writes of documents take the place of transactions. */
export async function measure(connection: Connection, name: string): Promise<Measured | undefined> {
  const { watch } = connection
  const sizeBytes = (await readSizes(connection, 'all')).get(name)
  const query = { serverStatus: 1, opLatencies: { histograms: true }, repl: 0, metrics: 0, locks: 0 }
  const { opLatencies, wiredTiger } = ServerStatus.parse(await watch.command('admin', query))
  const { reads, writes } = opLatencies
  const slow = [...reads.histogram, ...writes.histogram].filter(({ micros }) => micros >= SLOW_MICROS)
  return {
    connections: await countConnectionsOf(watch, name),
    // MongoDB creates a database with its first document.
    sizeBytes: sizeBytes ?? 0,
    transactions: reads.ops + writes.ops,
    pages: {
      reads: wiredTiger.cache['pages requested from the cache'],
      misses: wiredTiger.cache['pages read into cache'],
    },
    slow: { total: slow.reduce((sum, { count }) => sum + count, 0) },
  }
}
