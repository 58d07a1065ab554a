import { readdir, readFile } from 'node:fs/promises'
import { z } from 'zod'
import { CONFINEMENTS } from '../confinement/confinement.ts'
import { writeDurably } from './durable-file.ts'
import { hasCode } from '../error-code.ts'
import { type ServerPaths, serverPaths } from './paths.ts'

const Record = z.object({
  package: z.string(),
  version: z.string(),
  listen: z.string(),
  port: z.int().min(1).max(65_535),
  /** Confinement and user id of the server; absent in records of older versions. */
  confinement: z.enum(CONFINEMENTS).optional(),
  uid: z.int().min(1).optional(),
  /** Process started last; absent during a start. */
  process: z.object({ pid: z.int().min(2), startTime: z.string().regex(/^\d+$/) }).optional(),
})

/** Content of `process.json`: how a server was started. With it the port stays, and the process is found after a crash. */
export type Record = z.output<typeof Record>

/** Reads a record; undefined when the file is missing or invalid. */
export async function readRecord(paths: ServerPaths): Promise<Record | undefined> {
  try {
    return Record.safeParse(JSON.parse(await readFile(paths.record, 'utf8'))).data
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ENOTDIR') || error instanceof SyntaxError) return undefined
    throw error
  }
}

export async function writeRecord(paths: ServerPaths, record: Record): Promise<void> {
  await writeDurably(paths.record, `${JSON.stringify(record, null, 2)}\n`, { mode: 0o600 })
}

/** Reads the records of all servers below `directory`, by uid. */
export async function readRecords(directory: string): Promise<ReadonlyMap<string, Record>> {
  const uids = await readdir(directory).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return []
    throw error
  })
  const records = await Promise.all(uids.map(async (uid) => [uid, await readRecord(serverPaths(directory, uid))] as const))
  return new Map(records.flatMap(([uid, record]) => (record ? [[uid, record]] : [])))
}
