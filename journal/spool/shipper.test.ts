import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { requestRecord } from '../../test/conformance/journal/records.ts'
import type { Shipment } from '../outbox.ts'
import { KeepError } from '../postgresql/keeper.ts'
import { requestBatch, requestRows } from '../request-text.ts'
import { type FaultyFiles, faultyFiles } from '../../test/support/journal/segment-logs.ts'
import { encodeFrame, type FrameKind } from './frame.ts'
import { SegmentLog } from './segment-log.ts'
import { createShipper, type Shipper } from './shipper.ts'

interface TestShipper extends AsyncDisposable {
  readonly files: FaultyFiles
  readonly shipper: Shipper
  readonly kept: string[]
  /** Reports about the disk, changes only. */
  readonly disk: string[]
  readonly counts: { readonly shipped: number; readonly refused: number }
  add(text: string, kind?: FrameKind, records?: number): void
}

/** Rejects invalid batches of requests as `createKeeper` does. */
function refuseWhatIsNone(requests: Shipment['requests']): void {
  try {
    requests.forEach(requestRows)
  } catch (cause) {
    throw new KeepError(false, { cause })
  }
}

function start(): TestShipper {
  const directory = mkdtempSync(join(tmpdir(), 'mooring-shipper-'))
  const files = faultyFiles()
  const log = new SegmentLog({ directory, name: 'events', durable: true, files })
  const kept: string[] = []
  const disk: string[] = []
  const counts = { shipped: 0, refused: 0 }
  const shipper = createShipper({
    logs: [log],
    keeper: {
      async keep({ audit, requests }: Shipment) {
        refuseWhatIsNone(requests)
        kept.push(...audit, ...requests.flatMap(requestRows).map(({ path }) => path))
        return { refused: 0 }
      },
    },
    onShipped: (records) => (counts.shipped += records),
    onRefused: (records) => (counts.refused += records),
    onTry: () => undefined,
    onDisk(error) {
      const said = error instanceof Error && 'code' in error ? String(error.code) : 'works'
      if (disk.at(-1) !== said) disk.push(said)
    },
    random: () => 0,
  })
  return {
    ...{ files, shipper, kept, disk, counts },
    add(text, kind = 'audit', records = 1) {
      log.append(encodeFrame({ kind, records, payload: Buffer.from(text) }), records)
      shipper.wake()
    },
    async [Symbol.asyncDispose]() {
      await shipper.close()
      log.close()
      rmSync(directory, { recursive: true })
    },
  }
}

test.each(['openToRead', 'read'] as const)(
  'a disk on which %s fails ends nothing: it is told, and all is shipped once it works',
  async (call) => {
    await using place = start()
    place.files.failing.set(call, 'EIO')
    place.add('one')
    await expect.poll(() => place.disk).toEqual(['EIO'])
    place.add('two')
    place.files.failing.clear()
    await expect.poll(() => place.kept).toEqual(['one', 'two'])
    await expect.poll(() => place.disk).toEqual(['EIO', 'works'])
  },
)

test('records on a read-only disk are shipped once, and later ones too', async () => {
  await using place = start()
  place.files.failing.set('remove', 'EROFS')
  const large = 'x'.repeat(3_000_000)
  for (const text of ['a', 'b', 'c', 'd']) place.add(text + large)
  expect(await place.shipper.drain(5_000)).toBe(true)
  expect(place.kept.map(([first]) => first)).toEqual(['a', 'b', 'c', 'd'])
  await expect.poll(() => place.disk.at(-1)).toBe('EROFS')
  place.files.failing.clear()
  place.add('e')
  await expect.poll(() => [place.kept.at(-1), place.disk.at(-1)]).toEqual(['e', 'works'])
})

test('requests in the format of an earlier version are rejected, and block nothing', async () => {
  await using place = start()
  const request = requestRecord({ tunnel: 't', path: '/new' })
  const now = Buffer.from(requestBatch([request])).toString()
  // Each request had its tunnel after its id.
  const before = now.replace('@t\n', '').replace('\n', '\nt\n')
  place.add(before.repeat(3), 'requests', 3)
  place.add(now, 'requests')
  place.add('after')
  expect(await place.shipper.drain(5_000)).toBe(true)
  expect(place.kept.toSorted()).toEqual(['/new', 'after'])
  expect(place.counts.refused).toBeGreaterThanOrEqual(3)
  expect(place.counts.shipped).toBe(5)
})
