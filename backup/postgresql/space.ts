import { statfs } from 'node:fs/promises'
import { MooringError } from '../../shared/errors.ts'
import type { RestorePlan } from './catalog/restorable.ts'
import { SEGMENT_BYTES } from './catalog/wal-names.ts'

/** Code of a restore for which the volume has too little space. */
export const NO_SPACE = 'restore_needs_space'

/** Space in bytes for the segments that recovery has copied and not removed yet: twice PostgreSQL's default of `max_wal_size`. */
const COPIES_BYTES = 2 * 2 ** 30

/** Returns the space in bytes that a restore takes at most while it runs: recovery copies each segment, and removes old copies. */
function needOf({ base, first, last }: RestorePlan): number {
  const wal = (last - first + 1) * SEGMENT_BYTES
  return base.dataBytes + wal + Math.min(wal, COPIES_BYTES)
}

const gib = (bytes: number): string => (bytes / 2 ** 30).toFixed(1)

/**
 * Checks that the volume of `directory` has space for a restore, before it is filled: other databases may be on the volume.
 * @param share part of the free space that the restore may take, 0 to 1
 * @throws MooringError {@link NO_SPACE}
 */
export async function checkSpace(directory: string, plan: RestorePlan, share: number): Promise<void> {
  const needed = needOf(plan)
  const { bavail, bsize } = await statfs(directory)
  const free = bavail * bsize
  if (needed <= free * share) return
  throw new MooringError(
    NO_SPACE,
    `the restore needs ${gib(needed)} GiB of the volume, of which ${gib(free)} GiB are free: make space, or enlarge the volume`,
  )
}
