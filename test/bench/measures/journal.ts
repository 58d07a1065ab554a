import { randomUUIDv7 } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { join } from 'node:path'
import { requestRecord, idAt } from '../../conformance/journal/records.ts'
import { createPostgresqlReader } from '../../../journal/postgresql.ts'
import { temporarySpool, type JournalServer, startJournalServer } from '../../support/journal/journal-server.ts'
import { silent } from '../../support/journal/temporary-journal.ts'
import { type Finding, finding, type Measure } from '../measure.ts'
import { quantile, summary, timed } from '../statistics.ts'
import type { RequestRecord } from '../../../journal/port.ts'
import { openSqliteJournal } from '../../../journal/sqlite.ts'
import { atLeast } from '../tunnel/rounds.ts'
import { temporaryDirectory } from '../setup.ts'

const RATE = 20_000
const SECONDS = 10
const TEN_MILLION = 10_000_000
const DAY_MINUTES = 1_440
const READS = 50

async function keepWhileServing(server: JournalServer): Promise<readonly Finding[]> {
  await using place = await temporarySpool()
  await place.setLogin(server.logins.edge)
  await using spool = await place.open()
  const like = requestRecord({ tunnel: randomUUIDv7() })
  const began = performance.now()
  const before = process.threadCpuUsage()
  let given = 0
  for (let elapsed = 0; elapsed < SECONDS * 1_000; elapsed = performance.now() - began) {
    for (; given < (RATE * elapsed) / 1_000; given += 1) {
      const sourceIp = `203.0.113.${given % 200}`
      spool.request({ ...like, id: randomUUIDv7(), at: Date.now(), path: `/api/items/${given}`, sourceIp })
    }
    await delay(1)
  }
  const used = process.threadCpuUsage(before)
  await spool.shipped(120_000)
  const perSecond = given / ((performance.now() - began) / 1_000)
  const microseconds = (used.user + used.system) / given
  return [
    {
      what: `records kept, of ${RATE} sent a second`,
      result: `${perSecond.toFixed(0)} /s`,
      target: `≥ ${RATE * 0.9} /s`,
      holds: perSecond >= RATE * 0.9,
    },
    finding('records dropped', { value: spool.dropped(), unit: '', digits: 0 }, 0),
    finding('processor time of the serving thread for each record', { value: microseconds, unit: 'µs' }),
  ]
}

/** Inserts the sums of one tunnel with ten million requests in a day, and those of 300 other tunnels, and measures reads of the stats. */
async function readStats(server: JournalServer): Promise<readonly Finding[]> {
  const tunnel = randomUUIDv7()
  const now = Math.floor(Date.now() / 60_000)
  const each = Math.round(TEN_MILLION / DAY_MINUTES)
  const admin = await server.server.client({ database: 'journal' })
  const ips = (count: number) => `(SELECT array_agg('203.0.' || i % 7 || '.' || i) FROM generate_series(1, ${count}) AS i)`
  const counts = (count: number) => `array_fill(${Math.floor(each / count)}::bigint, ARRAY[${count}])`
  await admin.query(`SET search_path = journal, public`)
  await admin.query(
    `INSERT INTO minutes SELECT t, m, $3::bigint, $3::bigint * 3.2, 0, $3::bigint, 0, 0, 0, 5, 1000, 100000, m::bigint * 60000, m::bigint * 60000 + 59999
     FROM generate_series($1::int - ${DAY_MINUTES}, $1::int) AS m,
       (SELECT $2::uuid AS t UNION ALL SELECT gen_random_uuid() FROM generate_series(1, 300)) AS tunnels`,
    [now, tunnel, each],
  )
  await admin.query(
    `INSERT INTO client_minutes SELECT $2::uuid, m, ${ips(64)}, ${counts(64)} FROM generate_series($1::int - ${DAY_MINUTES}, $1::int) AS m`,
    [now, tunnel],
  )
  await admin.query(
    `INSERT INTO client_hours SELECT $2::uuid, m, ${ips(256)}, ${counts(256)} FROM generate_series($1::int / 60 * 60 - ${DAY_MINUTES}, $1::int, 60) AS m`,
    [now, tunnel],
  )
  await admin.query('ANALYZE')
  await using reader = createPostgresqlReader({ login: () => Promise.resolve(server.logins.reader), log: silent })
  const times: number[] = []
  for (let read = 0; read < READS; read += 1) {
    const began = performance.now()
    await reader.stats(tunnel, { from: Date.now() - DAY_MINUTES * 60_000, to: Date.now() })
    times.push(performance.now() - began)
  }
  return [
    finding('24 h stats over 10 million records, p50', { value: quantile(times, 0.5), unit: 'ms' }, 20),
    finding('the same, p90', { value: quantile(times, 0.9), unit: 'ms' }),
  ]
}

async function run(): Promise<readonly Finding[]> {
  await using server = await startJournalServer()
  return [...(await keepWhileServing(server)), ...(await readStats(server))]
}

export const journalMeasure: Measure = {
  name: 'journal',
  method: `PostgreSQL 15 on this machine, with the settings of Mooring's servers. A spool receives ${RATE} requests a second for ${SECONDS} s. The rate is the number of requests stored in PostgreSQL, divided by the time until the last one is stored. The stats are read ${READS} times from the sums of one day, with ten million requests of one tunnel from 256 addresses, and 300 other tunnels.`,
  run,
}

/** A tenth of the target's number. The stats read roll-ups only, and their number is the same. */
const RECORDS = 1_000_000
const BATCH = 2_000
const DAY_MS = 86_400_000
const TUNNEL = 'bench'

const record = (at: number, number: number): RequestRecord => ({
  ...{
    id: idAt(at),
    tunnel: TUNNEL,
    at,
    method: 'GET',
    path: `/page/${number % 1_000}`,
    status: number % 50 === 0 ? 503 : 200,
  },
  ...{ durationMs: number % 90, bytesIn: 0, bytesOut: 1_000, sourceIp: `203.0.${(number >> 8) % 4}.${number % 256}` },
  ...{ origin: 'backend', reason: null, protocol: 'http/1.1' },
})

async function runEmbedded() {
  await using dir = await temporaryDirectory()
  await using journal = await openSqliteJournal({ path: join(dir.path, 'journal.db'), log: silent })
  const from = Date.now() - DAY_MS
  const span = { from, to: from + DAY_MS }
  const kept = async () => (await journal.stats(TUNNEL, span)).requests
  const start = performance.now()
  for (let sent = 0; sent < RECORDS; sent += BATCH) {
    for (let index = sent; index < sent + BATCH; index++)
      journal.request(record(from + Math.floor((index / RECORDS) * DAY_MS), index))
    // The journal drops records that arrive faster than it stores them.
    while (sent + BATCH - (await kept()) > 10 * BATCH) await delay(1)
  }
  while ((await kept()) < RECORDS - journal.dropped()) await delay(10)
  const seconds = (performance.now() - start) / 1_000
  const reads: number[] = []
  for (let count = 0; count < READS; count++) reads.push(await timed(() => journal.stats(TUNNEL, span)))
  const { median, p99 } = summary(reads)
  return [
    atLeast('records kept a second', { value: RECORDS / seconds, unit: '', digits: 0 }, 20_000),
    finding('records dropped', { value: journal.dropped(), unit: '', digits: 0 }, 0),
    finding(
      `stats of 24 h over ${RECORDS / 1e6} million records, p50`,
      { value: median, unit: 'ms', spread: `p99 ${p99.toFixed(1)}` },
      20,
    ),
  ]
}

export const tunnelJournal: Measure = {
  name: 'tunnel-journal',
  method: `The journal stores ${RECORDS / 1e6} million request records of one tunnel in its file, as fast as it can. They come from 1,024 addresses and are spread evenly over 24 h. Then the stats of the 24 h are read ${READS} times.`,
  run: runEmbedded,
}
