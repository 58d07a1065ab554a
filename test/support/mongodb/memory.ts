import { execFile } from 'node:child_process'
import { readFile, stat } from 'node:fs/promises'
import { promisify } from 'node:util'
import type { Document, MongoClient } from 'mongodb'

/** Array that doubles with each of 23 steps, from eight elements on. No setting bounds it, and no kill ends it. */
const DOUBLED: Document = {
  $reduce: { input: { $range: [0, 23] }, initialValue: '$values', in: { $concatArrays: ['$$value', '$$value'] } },
}

/** Runs a statement of a tenant that takes some gigabytes of memory within seconds. @throws errors of the driver when the server ends */
export async function useUpMemory(client: MongoClient, name: string): Promise<void> {
  const one = client.db(name).collection('one')
  await one.updateOne({}, { $set: { values: [1, 2, 3, 4, 5, 6, 7, 8] } }, { upsert: true })
  await one.aggregate([{ $project: { n: { $size: DOUBLED } } }]).toArray()
}

const PAGE_BYTES = 4_096

/** Lets a process take 2 GiB of addresses more than now, as on a machine that has no more memory. */
export async function limitMemory(pid: number): Promise<void> {
  const pages = Number((await readFile(`/proc/${pid}/statm`, 'utf8')).split(' ')[0])
  // A process may change the limits of those of its own user.
  const { uid, gid } = await stat(`/proc/${pid}`)
  await promisify(execFile)('prlimit', ['--pid', `${pid}`, `--as=${pages * PAGE_BYTES + 2 ** 31}`], { uid, gid })
}
