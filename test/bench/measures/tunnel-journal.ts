import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { idAt } from '../../conformance/journal/records.ts'
import type { RequestRecord } from '../../../journal/port.ts'
import { openSqliteJournal } from '../../../journal/sqlite.ts'
import { finding, type Measure } from '../measure.ts'
import { atLeast } from '../tunnel/rounds.ts'
import { summary, timed } from '../statistics.ts'
import { temporaryDirectory } from '../temporary-directory.ts'

/** A tenth of the target's number. The stats read roll-ups only, and their number is the same. */
const RECORDS = 1_000_000
const BATCH = 2_000
const DAY_MS = 86_400_000
const READS = 50
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

async function run() {
  await using dir = await temporaryDirectory()
  const silent = { warn: () => undefined, info: () => undefined }
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
  run,
}
