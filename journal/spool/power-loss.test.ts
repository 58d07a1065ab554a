import { existsSync, fstatSync, truncateSync } from 'node:fs'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type FaultyFiles, faultyFiles, drain, frameOf, openDurable, scratch } from '../../test/support/journal/segment-logs.ts'
import { SegmentLog } from './segment-log.ts'

test('synced frames survive a power loss, with any failures and overlapping syncs', async () => {
  const calls = ['append', 'truncate', 'remove', 'sync', 'syncAside', 'syncDirectory'] as const
  const step = fc.record({
    does: fc.constantFrom('append', 'append', 'sync', 'begin sync'),
    size: fc.constantFrom(10, 10, 300),
    fails: fc.option(fc.constantFrom(...calls), { nil: undefined }),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      using place = scratch()
      const disk = lossyFiles()
      const log = new SegmentLog({ directory: place.directory, name: 'x', durable: true, files: disk.files, segmentBytes: 400 })
      const [added, sure, pending]: [string[], Set<string>, Promise<void>[]] = [[], new Set(), []]
      const sync = async () => {
        const before = [...added]
        await log.sync()
        for (const text of before) sure.add(text)
      }
      const acts = {
        append: (size: number, text: string) => {
          log.append(frameOf(text.padEnd(size)), 1)
          added.push(text)
        },
        sync,
        'begin sync': () => void pending.push(sync().catch(expectFault)),
      }
      for (const [index, { does, size, fails }] of steps.entries()) {
        if (fails !== undefined) disk.files.failing.set(fails, 'EIO')
        const act: (size: number, text: string) => void | Promise<void> = acts[does]
        await (async () => act(size, `text ${index}`))().catch(expectFault)
        disk.files.failing.clear()
      }
      await Promise.all(pending)
      disk.losePower()
      const left = new Set(drain(openDurable(place.directory)).map((text) => text.trimEnd()))
      expect([...sure].filter((text) => !left.has(text))).toEqual([])
    }),
    { numRuns: 300 },
  )
})

const expectFault = (error: unknown) => {
  expect(error).toMatchObject({ code: 'EIO' })
}

/** Creates a disk that keeps only the synced part of a file at a power loss. */
function lossyFiles() {
  const files = faultyFiles()
  const paths = new Map<number, string>()
  const kept = new Map<string, number>()
  const sizeOf = (fd: number) => fstatSync(fd).size
  const keep = (fd: number, bytes: number) => void kept.set(paths.get(fd) ?? '', bytes)
  const { create, sync, syncAside } = files
  const lossy: FaultyFiles = Object.assign(files, {
    create(path: string) {
      const fd = create(path)
      paths.set(fd, path)
      kept.set(path, 0)
      return fd
    },
    sync(fd: number) {
      sync(fd)
      keep(fd, sizeOf(fd))
    },
    async syncAside(fd: number) {
      const bytes = sizeOf(fd)
      const path = paths.get(fd) ?? ''
      await syncAside(fd)
      kept.set(path, Math.max(bytes, kept.get(path) ?? 0))
    },
  })
  const losePower = () => {
    for (const [path, bytes] of kept) if (existsSync(path)) truncateSync(path, bytes)
  }
  return { files: lossy, losePower }
}
