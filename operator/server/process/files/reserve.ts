import { open, rename, rm, stat, statfs } from 'node:fs/promises'
import { hasCode } from '../../../../shared/errors.ts'
import type { ServerPaths } from './paths.ts'

const MIB = 1_048_576
/** Bytes for the write-ahead log of a recovery. */
const RESERVE_BYTES = 48 * MIB
/** Free bytes below which an engine may be unable to start. */
const FULL_BYTES = 32 * MIB
/** Free bytes required to create the reserve, which must not fill the disk itself. */
const SPARE_BYTES = 4 * RESERVE_BYTES

/**
 * File beside a server's data that reserves disk space. An engine ends when it cannot write its log, and cannot start on a full disk:
 * without a reserve, one tenant that fills the disk takes all others offline until an administrator intervenes.
 */
export interface Reserve {
  /** Creates the file if it is missing and the disk has enough space. Never rejects. */
  keep(signal: AbortSignal): Promise<void>
  /** Removes the file when the disk is full. @returns whether it was removed */
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
        // A missing reserve has no other effect; the next start tries again.
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
