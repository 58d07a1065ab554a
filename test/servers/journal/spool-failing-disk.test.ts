import { readdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { Registry } from 'prom-client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { smallDisk } from '../../support/postgresql/disks.ts'
import { connectionRecord } from '../../conformance/journal/records.ts'
import { type ReadableJournal, readableJournal, temporarySpool } from '../../support/journal/journal-server.ts'
import { LATER, patient } from '../../support/patience.ts'

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

test('on a failing disk the spool sets a metric and keeps running, and ships its records once the disk works', async () => {
  await using temporary = await temporarySpool()
  const { lines, log } = lineLog()
  const registry = new Registry()
  const failing = async () => (await registry.getSingleMetric('mooring_journal_spool_failing')?.get())?.values[0]?.value
  const [before, meanwhile] = [connectionRecord({ tunnel }), connectionRecord({ tunnel })]
  {
    await using spool = await temporary.open({ log, registry })
    await spool.connection(before)
    const moved = `${temporary.directory}-moved`
    await rename(temporary.directory, moved)
    // Existing files can be written, but neither read nor followed by another file.
    await temporary.setLogin(journal.server.logins.edge)
    await spool.shipped(patient(1_000))
    await expect.poll(failing, LATER).toBe(1)
    await rename(moved, temporary.directory)
    await spool.connection(meanwhile)
    await spool.shipped(patient(10_000))
    await expect.poll(failing, LATER).toBe(0)
  }
  expect(await idsKept()).toEqual([before.id, meanwhile.id])
  expect(await readdir(temporary.directory)).toEqual([])
  expect(lines.filter((line) => line.includes('died'))).toEqual([])
  // At most once a minute, as failure-log.test.ts proves; a slow machine may take longer than a minute here.
  const ofDisk = lines.filter((line) => line.includes('disk'))
  expect([ofDisk.at(0), ofDisk.at(-1)]).toEqual([FAILS, 'disk of the journal spool works again'])
})

test('on a full disk the spool acknowledges events only once space is free', async () => {
  await using disk = await smallDisk(8)
  await using temporary = await temporarySpool()
  await temporary.setLogin(journal.server.logins.edge)
  const { lines, log } = lineLog()
  const before = await idsKept()
  const records = Array.from({ length: 50 }, () => connectionRecord({ tunnel }))
  {
    await using spool = await temporary.open({ directory: join(disk.dir, 'spool'), log })
    const makeRoom = await disk.fill()
    let acknowledged = 0
    const waiting = records.map(async (record) => {
      await spool.connection(record)
      acknowledged += 1
    })
    await expect.poll(() => lines, LATER).toContain(FAILS)
    expect(acknowledged).toBe(0)
    await makeRoom()
    await Promise.all(waiting)
  }
  expect(await idsKept()).toEqual([...before, ...records.map(({ id }) => id)])
})
