import { ApiToken } from './api-token.ts'
import { ClusterRoleBinding, ConfigMap, EndpointSlice, Lease, Namespace, RoleBinding, Secret } from './core.ts'
import { DatabaseArchive } from './database-archive.ts'
import { DatabaseServer } from './database-server.ts'
import { DedicatedDatabase } from './dedicated-database.ts'
import type { Kind } from './kind.ts'
import { Organization } from './organization.ts'
import { Plan } from './plan.ts'
import { Region } from './region.ts'
import { SharedInstance } from './shared-instance.ts'
import { TenantNamespace } from './tenant-namespace.ts'
import { Tunnel } from './tunnel.ts'
import { TunnelEndpoint } from './tunnel-endpoint.ts'
import { TunnelPassword } from './tunnel-password.ts'
import { TunnelWebhook } from './tunnel-webhook.ts'

/** Mooring's own kinds; a CRD is generated for each. */
export const CUSTOM_KINDS: readonly Kind[] = [
  Organization,
  TenantNamespace,
  Region,
  Plan,
  DatabaseServer,
  DatabaseArchive,
  SharedInstance,
  DedicatedDatabase,
  ApiToken,
  TunnelEndpoint,
  Tunnel,
  TunnelPassword,
  TunnelWebhook,
]

/** Every kind that a store serves. */
export const KINDS: readonly Kind[] = [
  ...CUSTOM_KINDS,
  ...[Namespace, Secret, ConfigMap, RoleBinding, ClusterRoleBinding, Lease, EndpointSlice],
]
