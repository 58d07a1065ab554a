import { open, rename, rm, stat, statfs } from 'node:fs/promises'
import { hasCode } from '../error-code.ts'
import type { ServerPaths } from './paths.ts'

const MIB = 1_048_576
/** Room for the write-ahead log of a recovery, in bytes. */
const RESERVE_BYTES = 48 * MIB
/** With less room than this, in bytes, an engine may be unable to start. */
const FULL_BYTES = 32 * MIB
/** The reserve is only made where it does not itself fill the disk. */
const SPARE_BYTES = 4 * RESERVE_BYTES

/**
 * A file beside a server's data that takes room for bad times. An engine that cannot write its log ends, and cannot start on a full disk
 * either: one tenant that fills the disk would keep all others out until a person came.
 */
export interface Reserve {
  /** Makes the file where there is none and the disk has room. Never rejects. */
  keep(signal: AbortSignal): Promise<void>
  /** Removes the file when the disk is full. Returns whether it did. */
  releaseWhenFull(): Promise<boolean>
}

export function reserveOf({ root, reserve }: Pick<ServerPaths, 'root' | 'reserve'>): Reserve {
  async function freeBytes(): Promise<number> {
    const { bavail, bsize } = await statfs(root)
    return bavail * bsize
  }

  async function isThere(): Promise<boolean> {
    try {
      await stat(reserve)
      return true
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return false
      throw error
    }
  }

  async function make(signal: AbortSignal): Promise<void> {
    const unfinished = `${reserve}.new`
    await using file = await open(unfinished, 'w', 0o600)
    const zeros = Buffer.alloc(MIB)
    for (let written = 0; written < RESERVE_BYTES; written += MIB) {
      signal.throwIfAborted()
      await file.write(zeros)
    }
    await rename(unfinished, reserve)
  }

  return {
    async keep(signal) {
      try {
        if (!(await isThere()) && (await freeBytes()) > SPARE_BYTES) await make(signal)
      } catch {
        // Without it all is as it would be without reserves; the next start tries again.
        await rm(`${reserve}.new`, { force: true }).catch(() => undefined)
      }
    },
    async releaseWhenFull() {
      if (!(await isThere()) || (await freeBytes()) >= FULL_BYTES) return false
      await rm(reserve, { force: true })
      return true
    },
  }
}
