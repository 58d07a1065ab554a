/** Limits of surface, section 2: a principal's rates, a namespace's quotas. */
export interface ApiLimits {
  /** A second. */
  readonly readRate: number
  readonly readBurst: number
  readonly writeRate: number
  readonly writeBurst: number
  /** Of one source. */
  readonly failedAuthPerMinute: number
  readonly quotaInstances: number
  readonly quotaApiTokens: number
  readonly quotaTunnels: number
}

/** What holds unless somebody sets it; the chart's values say the same. */
export const DEFAULT_LIMITS: ApiLimits = {
  readRate: 100,
  readBurst: 200,
  writeRate: 20,
  writeBurst: 40,
  failedAuthPerMinute: 20,
  quotaInstances: 50,
  quotaApiTokens: 20,
  quotaTunnels: 50,
}
