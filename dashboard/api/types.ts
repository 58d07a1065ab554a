import type { z } from 'zod'
import type { CreateMetadata } from '../../apiserver/catalog/catalog-routes.ts'
import type { RegionView } from '../../apiserver/catalog/regions.ts'
import type { BackupView } from '../../apiserver/databases/database-backups.ts'
import type { ConnectionView as DatabaseConnectionView, DatabaseView } from '../../apiserver/databases/database-view.ts'
import type { BackupsView } from '../../apiserver/databases/routes/backups.ts'
import type { Metrics as DatabaseMetricsView } from '../../apiserver/databases/routes/metrics.ts'
import type { InstanceView } from '../../apiserver/instances/instance-view.ts'
import type { AuditEntryView, ConnectionView, RequestView, StatsView } from '../../apiserver/journal/journal-schemas.ts'
import type { CertificateEventView, CertificateView, TunnelConfigView, TunnelView } from '../../apiserver/tunnels/tunnel-view.ts'

/** Data of the REST API as the pages read it: the types of the API's own schemas, which leave nothing in the bundle. */
export type { CreateMetadata, DatabaseConnectionView as DatabaseConnection, DatabaseView as DedicatedDatabase }
export type {
  BackupsView as Backups,
  BackupView as Backup,
  RegionView as Region,
  InstanceView as Instance,
  RequestView as TunnelRequest,
}
export type {
  CertificateEventView as CertificateEvent,
  CertificateView as Certificate,
  TunnelConfigView as TunnelConfig,
  TunnelView as Tunnel,
}
export type AuditEntry = z.output<typeof AuditEntryView>
export type Connection = z.output<typeof ConnectionView>
export type Stats = z.output<typeof StatsView>
export type DatabaseMetrics = z.output<typeof DatabaseMetricsView>

export type Role = 'viewer' | 'editor' | 'admin'

/** `data` of `GET /v1/me`. */
export interface Me {
  readonly user: string
  readonly groups: readonly string[]
  readonly namespaces: readonly { readonly organization: string; readonly namespace: string; readonly role: Role }[]
}

/** Temporary password of a tunnel. */
export interface TunnelPassword {
  readonly id: string
  readonly password?: string
  readonly expiresAt: string
  readonly createdAt: string
  readonly createdBy: string | null
}

/** Explained decision of the edge. */
export interface Explanation {
  readonly steps: readonly { readonly check: string; readonly verdict: 'pass' | 'stop'; readonly detail: string }[]
  readonly answer: { readonly status: number | null; readonly reason: string | null }
}

/** Commands that connect a tunnel. */
export interface Connect {
  readonly ssh: string
  readonly loop: string
  readonly autossh: string
  readonly systemd: string
  readonly knownHosts: readonly string[]
}

/** Webhook of a tunnel. */
export interface Webhook {
  readonly id: string
  readonly url: string
  readonly events: readonly string[]
  readonly enabled: boolean
  readonly disabledReason: string | null
  readonly createdAt: string
  readonly secret?: string
}

/** Event on its way to a webhook. */
export interface Delivery {
  readonly id: string
  readonly eventId: string
  readonly type: string
  readonly attempt: number
  readonly status: 'pending' | 'delivered' | 'failed'
  readonly requestedAt: string | null
  readonly responseStatus: number | null
  readonly durationMs: number | null
  readonly responseBody: string | null
  readonly error: string | null
  readonly nextAttemptAt: string | null
}

export type Plan = CreateMetadata['plans'][number]
export type Price = Plan['price']
export type FirewallRule = NonNullable<DatabaseView['firewallRules']>[number]
