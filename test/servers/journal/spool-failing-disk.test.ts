import { readdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { Registry } from 'prom-client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { smallDisk } from '../../support/postgresql/small-disk.ts'
import { connectionRecord } from '../../conformance/journal/records.ts'
import { type ReadableJournal, readableJournal } from '../../support/store/readable-journal.ts'
import { temporarySpool } from '../../support/journal/temporary-spool.ts'

const tunnel = '0b8f5d0e-6a55-4c6e-9a6b-4f6f1d1c0a01'
const FAILS = 'disk of the journal spool fails; retrying'
let journal: ReadableJournal

beforeAll(async () => {
  journal = await readableJournal()
})
afterAll(() => journal[Symbol.asyncDispose]())

/** Creates a log that collects its lines by message. */
function lineLog() {
  const lines: string[] = []
  const keep = (_details: object, message: string) => void lines.push(message)
  return { lines, log: { warn: keep, info: keep } }
}

/** Returns the ids of the connections in the journal, oldest first. */
async function idsKept(): Promise<readonly string[]> {
  return (await journal.reader.connections({ tunnel, refused: false }, { limit: 1_000 })).map(({ id }) => id).toReversed()
}

test('a failing disk neither ends the thread nor fills the log, sets a metric, and the spool continues once it works', async () => {
  await using place = await temporarySpool()
  const { lines, log } = lineLog()
  const registry = new Registry()
  const failing = async () => (await registry.getSingleMetric('mooring_journal_spool_failing')?.get())?.values[0]?.value
  const [before, meanwhile] = [connectionRecord({ tunnel }), connectionRecord({ tunnel })]
  {
    await using spool = await place.open({ log, registry })
    await spool.connection(before)
    const away = `${place.directory}-away`
    await rename(place.directory, away)
    // Existing files can be written, but neither read nor followed by another file.
    await place.setLogin(journal.server.logins.edge)
    await spool.shipped(1_000)
    await expect.poll(failing, { timeout: 5_000 }).toBe(1)
    await rename(away, place.directory)
    await spool.connection(meanwhile)
    await spool.shipped(10_000)
    await expect.poll(failing, { timeout: 5_000 }).toBe(0)
  }
  expect(await idsKept()).toEqual([before.id, meanwhile.id])
  expect(await readdir(place.directory)).toEqual([])
  expect(lines.filter((line) => line.includes('died'))).toEqual([])
  // At most once a minute, as disk-health.test.ts proves; a slow machine may take longer than a minute here.
  const ofDisk = lines.filter((line) => line.includes('disk'))
  expect([ofDisk.at(0), ofDisk.at(-1)]).toEqual([FAILS, 'disk of the journal spool works again'])
})

test('on a full disk events are acknowledged only once there is space', async () => {
  await using disk = await smallDisk(8)
  await using place = await temporarySpool()
  await place.setLogin(journal.server.logins.edge)
  const { lines, log } = lineLog()
  const before = await idsKept()
  const records = Array.from({ length: 50 }, () => connectionRecord({ tunnel }))
  {
    await using spool = await place.open({ directory: join(disk.dir, 'spool'), log })
    const makeRoom = await disk.fill()
    let acknowledged = 0
    const waiting = records.map(async (record) => {
      await spool.connection(record)
      acknowledged += 1
    })
    await expect.poll(() => lines, { timeout: 10_000 }).toContain(FAILS)
    expect(acknowledged).toBe(0)
    await makeRoom()
    await Promise.all(waiting)
  }
  expect(await idsKept()).toEqual([...before, ...records.map(({ id }) => id)])
})
