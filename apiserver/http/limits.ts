import { DEFAULT_QUOTAS, type Quotas } from '../../process/quotas.ts'

/** Limits of surface, section 2: a principal's rates, a namespace's quotas. */
export interface ApiLimits extends Quotas {
  /** A second. */
  readonly readRate: number
  readonly readBurst: number
  readonly writeRate: number
  readonly writeBurst: number
  /** Of one source. */
  readonly failedAuthPerMinute: number
  readonly quotaApiTokens: number
}

/** What holds unless somebody sets it; the chart's values say the same. */
export const DEFAULT_LIMITS: ApiLimits = {
  ...DEFAULT_QUOTAS,
  readRate: 100,
  readBurst: 200,
  writeRate: 20,
  writeBurst: 40,
  failedAuthPerMinute: 20,
  quotaApiTokens: 20,
}
