import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
/** More than any disk of a test has. */
const FILLER_BYTES = 1 << 30

/** A file system of its own, in memory. */
export interface SmallDisk extends AsyncDisposable {
  /** Its root, for its owner alone. */
  readonly dir: string
  grow(mebibytes: number): Promise<void>
  /** Takes all the room that is left. Returns how to give it back. */
  fill(): Promise<() => Promise<void>>
}

/** @throws when this process may not mount one */
export async function smallDisk(mebibytes: number): Promise<SmallDisk> {
  const dir = await mkdtemp(join(tmpdir(), 'mooring-disk-'))
  await run('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m,mode=700`, 'tmpfs', dir]).catch(async (cause: unknown) => {
    await rm(dir, { recursive: true })
    throw new Error('this test fills a small tmpfs: it needs root, mount(8) and the right to mount', { cause })
  })

  return {
    dir,
    grow: async (size) => {
      await run('mount', ['-o', `remount,size=${size}m`, dir])
    },
    async fill() {
      const filler = join(dir, 'filler')
      const full = await fillUp(filler)
      if (!full) throw new Error(`${dir} is not as small as it should be`)
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
