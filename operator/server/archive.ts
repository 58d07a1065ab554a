import type { SpoolLimits } from '../../backup/postgresql/settings.ts'
import { clamp, type EngineSize } from '../engines/size.ts'

/** Directory in the data directory into which a server with archiving copies its write-ahead log. */
export const SPOOL = 'mooring_spool'

const SEGMENT_MIB = 16
const MIB_PER_GIB = 1_024
/** Share of the storage that the spool may take while the repository is away. */
const SHARE = 0.1

/** Bounds of the spool of a server: a tenth of its storage, from 8 to 64 segments. */
export const spoolLimits = (size: EngineSize | undefined): SpoolLimits => ({
  segments: clamp(((size?.storageGiB ?? 1) * MIB_PER_GIB * SHARE) / SEGMENT_MIB, 8, 64),
})
