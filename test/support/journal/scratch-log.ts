import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { diskFiles, type Files } from '../../../journal/spool/files.ts'
import { encodeFrame } from '../../../journal/spool/frame.ts'
import { SegmentLog } from '../../../journal/spool/segment-log.ts'

export const MOST = { records: 5, bytes: 200 }

/** Creates a directory for a test of logs, removed on disposal. */
export function scratch(): Disposable & { readonly directory: string } {
  const directory = mkdtempSync(join(tmpdir(), 'mooring-segments-'))
  return { directory, [Symbol.dispose]: () => rmSync(directory, { recursive: true }) }
}
export const open = (directory: string, files: Files = diskFiles) =>
  new SegmentLog({ directory, name: 'x', durable: false, files })
export const openDurable = (directory: string, files: Files = diskFiles) =>
  new SegmentLog({ directory, name: 'x', durable: true, files })
export const frameOf = (text: string, records = 1) => encodeFrame({ kind: 'audit', records, payload: Buffer.from(text) })

/** Takes all frames of a log. */
export function drain(log: SegmentLog): readonly string[] {
  const texts: string[] = []
  for (let batch = log.read(MOST); batch; batch = log.read(MOST)) {
    texts.push(...batch.frames.map(({ payload }) => payload.toString()))
    log.take(batch)
  }
  return texts
}
