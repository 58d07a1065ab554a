import { readdirSync, rmSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { faultyFiles, drain, frameOf, open, openDurable, scratch } from '../../test/support/journal/segment-logs.ts'
import { diskFiles, type Files } from './files.ts'
import { SegmentLog } from './segment-log.ts'

test('the sync after a failed one copies the frames that may be lost into a new file', async () => {
  using place = scratch()
  const files = faultyFiles()
  const log = openDurable(place.directory, files)
  log.append(frameOf('a'), 1)
  await log.sync()
  log.append(frameOf('b'), 1)
  files.failing.set('syncAside', 'EIO')
  await expect(log.sync()).rejects.toThrow('EIO')
  files.failing.clear()
  const [lost = ''] = readdirSync(place.directory)
  log.append(frameOf('c'), 1)
  await log.sync()
  // As when the system has discarded what it could not write.
  truncateSync(join(place.directory, lost), frameOf('a').length)
  expect(drain(open(place.directory))).toEqual(['a', 'b', 'c'])
})

test('a sync succeeds while the next file begins, and waiting calls share one sync', async () => {
  using place = scratch()
  const begun = Promise.withResolvers<undefined>()
  const gate = Promise.withResolvers<undefined>()
  let syncs = 0
  const files: Files = {
    ...diskFiles,
    async syncAside(fd) {
      syncs += 1
      begun.resolve(undefined)
      await gate.promise
      await diskFiles.syncAside(fd)
    },
  }
  const log = openDurable(place.directory, files)
  const large = 'x'.repeat(3_000_000)
  log.append(frameOf(large), 1)
  const syncing = log.sync()
  await begun.promise
  for (const text of [large, large]) log.append(frameOf(text), 1)
  const others = [log.sync(), log.sync()]
  gate.resolve(undefined)
  await Promise.all([syncing, ...others])
  expect(syncs).toBe(2)
  log.close()
})

test('a sync includes the files of a killed process', async () => {
  using place = scratch()
  openDurable(place.directory).append(frameOf('left'), 1)
  const files = faultyFiles()
  const log = openDurable(place.directory, files)
  files.failing.set('sync', 'EIO')
  await expect(log.sync()).rejects.toThrow('EIO')
  files.failing.clear()
  await log.sync()
})

test('while syncs fail no frame is lost, and the disk holds unsynced frames at most twice', async () => {
  using place = scratch()
  const files = faultyFiles()
  const log = openDurable(place.directory, files)
  log.append(frameOf('sure'), 1)
  await log.sync()
  files.failing.set('syncAside', 'EIO')
  for (let tries = 0; tries < 10; tries += 1) {
    if (tries < 3) log.append(frameOf(`unsure ${tries}`), 1)
    await expect(log.sync()).rejects.toThrow('EIO')
    expect(readdirSync(place.directory).length).toBeLessThanOrEqual(3)
  }
  files.failing.set('remove', 'EIO')
  for (let tries = 0; tries < 10; tries += 1) await expect(log.sync()).rejects.toThrow('EIO')
  expect(readdirSync(place.directory).length).toBeLessThanOrEqual(4)
  files.failing.clear()
  await log.sync()
  expect(readdirSync(place.directory)).toHaveLength(2)
  expect(new Set(drain(log))).toEqual(new Set(['sure', 'unsure 0', 'unsure 1', 'unsure 2']))
  log.close()
  expect([log.records, log.bytes, readdirSync(place.directory)]).toEqual([0, 0, []])
})

test('a sync succeeds after a file of a killed process was removed by hand', async () => {
  using place = scratch()
  for (const text of ['a', 'b']) openDurable(place.directory).append(frameOf(text), 1)
  const log = openDurable(place.directory)
  rmSync(join(place.directory, 'x-1.log'))
  await log.sync()
})

test('unsynced frames are not dropped', async () => {
  using place = scratch()
  const files = faultyFiles()
  const log = openDurable(place.directory, files)
  log.append(frameOf('a'), 1)
  files.failing.set('syncAside', 'EIO')
  await expect(log.sync()).rejects.toThrow('EIO')
  expect([log.hasOlder, log.drop()]).toEqual([false, undefined])
  files.failing.clear()
  await log.sync()
  expect(drain(log)).toEqual(['a'])
})

test('the sync of a file dropped meanwhile does not count: the file with its frames is synced too', async () => {
  using place = scratch()
  const begun = Promise.withResolvers<undefined>()
  const gate = Promise.withResolvers<undefined>()
  const synced = new Set<number>()
  const files: Files = {
    ...diskFiles,
    async syncAside(fd) {
      if (log.records === 1) return
      synced.add(fd)
      begun.resolve(undefined)
      await gate.promise
    },
  }
  const log = new SegmentLog({ directory: place.directory, name: 'x', durable: true, files, segmentBytes: 40 })
  log.append(frameOf('on the disk'), 1)
  await log.sync()
  log.append(frameOf('not yet'), 1)
  const syncing = log.sync()
  await begun.promise
  log.append(frameOf('next'), 1)
  expect(log.drop()).toBe(2)
  gate.resolve(undefined)
  await syncing
  expect(synced.size).toBe(2)
  expect(drain(log)).toEqual(['not yet', 'next'])
  log.close()
})
