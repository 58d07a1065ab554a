import { whole } from './setting-rules.ts'
import { type SettingsOf, withDefault } from './settings.ts'

/** Quotas of a namespace unless somebody sets them (surface, section 2); the chart's values say the same. */
export const DEFAULT_QUOTAS = { quotaInstances: 50, quotaTunnels: 50 } as const

const quota = (name: keyof typeof DEFAULT_QUOTAS, about: string) =>
  withDefault(whole(0, 1_000_000), '<n>', [String(DEFAULT_QUOTAS[name]), about])

/** What is held by the API, which refuses a POST, and by the operator, which serves no more, whoever made it: one setting is for both. */
export const QUOTA_SETTINGS = {
  quotaInstances: quota('quotaInstances', 'shared instances in one namespace'),
  quotaTunnels: quota('quotaTunnels', 'tunnels in one namespace'),
} as const

export type Quotas = SettingsOf<typeof QUOTA_SETTINGS>
