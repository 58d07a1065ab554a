import { DEFAULT_QUOTAS, type Quotas } from '../../process/quotas.ts'

/** Rates of a principal and quotas of a namespace (docs/api.md, "Rate limits and quotas"). */
export interface ApiLimits extends Quotas {
  /** Sustained reads of a principal per second. */
  readonly readRate: number
  readonly readBurst: number
  readonly writeRate: number
  readonly writeBurst: number
  /** Failed authentications of one source address per minute. */
  readonly failedAuthPerMinute: number
  readonly quotaApiTokens: number
}

/** Default limits; the chart's values are equal. */
export const DEFAULT_LIMITS: ApiLimits = {
  ...DEFAULT_QUOTAS,
  readRate: 100,
  readBurst: 200,
  writeRate: 20,
  writeBurst: 40,
  failedAuthPerMinute: 20,
  quotaApiTokens: 20,
}
