import { statfs, mkdir, symlink, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { blanksIn } from '../../../operator/server/process/files/paths.ts'

const MEMORY_BYTES = 4 * 1024 ** 3

/**
 * Returns the parent directory of test databases, in memory where there is space: a database has 300 files, which some disks take
 * most of a second to remove.
 */
export async function scratch(): Promise<string> {
  const memory = await statfs('/dev/shm').catch(() => undefined)
  return memory && memory.bavail * memory.bsize > MEMORY_BYTES ? '/dev/shm' : tmpdir()
}

/** Directory of prepared data directories for all tests. */
export const SHARED_BLANKS = fileURLToPath(new URL('../../../node_modules/.cache/mooring/blanks', import.meta.url))

/**
 * Lets servers in `directory` be copies of prepared data directories that all tests and later runs share. The first user creates
 * those. `directory` must exist, without prepared ones.
 */
export async function shareBlanks(directory: string): Promise<void> {
  await mkdir(SHARED_BLANKS, { recursive: true, mode: 0o700 })
  await symlink(SHARED_BLANKS, blanksIn(directory))
}

const run = promisify(execFile)
/** Size beyond that of any test's disk, in bytes. */
const FILLER_BYTES = 1 << 30

/** File system in memory for one test. */
export interface SmallDisk extends AsyncDisposable {
  /** Root of the file system, for its owner alone. */
  readonly dir: string
  grow(mebibytes: number): Promise<void>
  /** Fills the free space. Returns a function that frees it. */
  fill(): Promise<() => Promise<void>>
}

/** Mounts a file system of this size. @throws Error when this process may not mount */
export async function smallDisk(mebibytes: number): Promise<SmallDisk> {
  const dir = await mkdtemp(join(tmpdir(), 'mooring-disk-'))
  await run('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m,mode=700`, 'tmpfs', dir]).catch(async (cause: unknown) => {
    await rm(dir, { recursive: true })
    throw new Error('this test needs root, mount(8) and the right to mount a tmpfs', { cause })
  })

  return {
    dir,
    grow: async (size) => {
      await run('mount', ['-o', `remount,size=${size}m`, dir])
    },
    async fill() {
      const filler = join(dir, 'filler')
      const full = await fillUp(filler)
      if (!full) throw new Error(`${dir} is larger than ${mebibytes} MiB`)
      return () => rm(filler)
    },
    async [Symbol.asyncDispose]() {
      await run('umount', [dir])
      await rm(dir, { recursive: true })
    },
  }
}

async function fillUp(file: string): Promise<boolean> {
  try {
    await writeFile(file, chunks())
    return false
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOSPC') return true
    throw error
  }
}

function* chunks(): Generator<Uint8Array> {
  const chunk = Buffer.alloc(1 << 16)
  for (let written = 0; written < FILLER_BYTES; written += chunk.length) yield chunk
}
