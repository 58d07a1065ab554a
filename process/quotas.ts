import { whole } from './setting-rules.ts'
import { type SettingsOf, withDefault } from './settings.ts'

/** Default quotas of a namespace (docs/api.md, "Rate limits and quotas"), the same as in the chart's values. */
export const DEFAULT_QUOTAS = { quotaInstances: 50, quotaTunnels: 50 } as const

const quota = (name: keyof typeof DEFAULT_QUOTAS, about: string) =>
  withDefault(whole(0, 1_000_000), '<n>', [String(DEFAULT_QUOTAS[name]), about])

/** Quota settings. The API rejects a POST beyond a quota; the operator does not serve objects beyond it, also when kubectl created them. */
export const QUOTA_SETTINGS = {
  quotaInstances: quota('quotaInstances', 'shared instances in one namespace'),
  quotaTunnels: quota('quotaTunnels', 'tunnels in one namespace'),
} as const

export type Quotas = SettingsOf<typeof QUOTA_SETTINGS>
