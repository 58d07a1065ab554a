import type { Condition } from '../../crds/kind.ts'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import type { DatabaseServer } from '../../crds/database-server.ts'
import { FINALIZER, SHARED_NAMESPACE } from '../../crds/names.ts'
import type { Region } from '../../crds/region.ts'
import type { Tunnel } from '../../crds/tunnel.ts'
import { TunnelConfig } from '../../crds/tunnel-config.ts'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import type { TunnelPassword } from '../../crds/tunnel-password.ts'
import type { TunnelWebhook } from '../../crds/tunnel-webhook.ts'
import type { ApiToken } from '../../crds/api-token.ts'

/** Fields that differ from those of a new instance. */
export interface InstanceTraits {
  readonly metadata?: Partial<SharedInstance['metadata']>
  readonly spec?: Partial<SharedInstance['spec']>
  readonly status?: SharedInstance['status']
}

/** Returns a SharedInstance as a store would. */
export function sharedInstance({ metadata, spec, status }: InstanceTraits = {}): SharedInstance {
  return {
    apiVersion: 'mooring.dev/v1alpha1',
    kind: 'SharedInstance',
    metadata: {
      name: 'i-1',
      namespace: 'acme--prod',
      uid: '3f1c3a52-5d3c-4a77-9a31-0f5f0c3f8f10',
      resourceVersion: '7',
      generation: 1,
      creationTimestamp: '2026-01-02T03:04:05Z',
      ...metadata,
    },
    spec: {
      identifier: 'pr-42',
      region: REGION_ID,
      motor: 'postgresql-15.4.0',
      enabled: true,
      passwordVersion: 1,
      resetVersion: 0,
      extensions: [],
      ...spec,
    },
    ...(status && { status }),
  }
}

/** Id of the region of all builders. */
export const REGION_ID = '0b8f5d0e-6a55-4c6e-9a6b-4f6f1d1c0a01'

/** Returns a `Ready` condition with this reason. */
export function readyCondition(status: Condition['status'], reason: string, observedGeneration = 1): Condition {
  return {
    type: 'Ready',
    status,
    reason,
    message: `because: ${reason}`,
    lastTransitionTime: '2026-01-02T03:04:06Z',
    observedGeneration,
  }
}

/** Status of an instance whose database works. */
export const claimedStatus = {
  observedGeneration: 1,
  conditions: [readyCondition('True', 'Claimed')],
  name: 'pr42k7q2mz4a7e',
  user: 'pr42k7q2mz4a7e',
  secretRef: { name: 'i-1-credentials' },
  host: 'db.example.com',
  port: 5432,
  isEnabled: true,
  engineVersion: '15.4',
  passwordVersion: 1,
  resetVersion: 0,
} as const satisfies SharedInstance['status']

/** Fields that differ from those of a running, shared PostgreSQL 15 server. */
export interface ServerTraits {
  readonly metadata?: Partial<DatabaseServer['metadata']>
  readonly spec?: Partial<DatabaseServer['spec']>
  readonly status?: DatabaseServer['status']
}

/** Returns a DatabaseServer as a store would. */
export function databaseServer({ metadata, spec, status }: ServerTraits = {}): DatabaseServer {
  const name = metadata?.name ?? 'postgresql-15-4-0-r1-1'
  return {
    apiVersion: 'mooring.dev/v1alpha1',
    kind: 'DatabaseServer',
    metadata: {
      name,
      namespace: SHARED_NAMESPACE,
      uid: `uid-of-${name}`,
      resourceVersion: '5',
      generation: 1,
      creationTimestamp: '2026-01-01T00:00:00Z',
      finalizers: [FINALIZER],
      ...metadata,
    },
    spec: { motor: 'postgresql-15.4.0', region: REGION_ID, tenancy: 'shared', capacity: 2, ...spec },
    status: status ?? { host: '127.0.0.1', port: 5432, conditions: [readyCondition('True', 'Running')] },
  }
}

/** Returns a Region that runs PostgreSQL 15 as a store would. */
export function region(spec: Partial<Region['spec']> = {}): Region {
  return {
    apiVersion: 'mooring.dev/v1alpha1',
    kind: 'Region',
    metadata: {
      name: spec.name ?? 'local',
      uid: `uid-of-${spec.name ?? 'local'}`,
      resourceVersion: '3',
      generation: 1,
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
    spec: { id: REGION_ID, regionId: 1, name: 'local', motors: [{ id: 'postgresql-15.4.0', warm: true }], ...spec },
  }
}

/** Fields that differ from those of a new tunnel with the defaults. */
export interface TunnelTraits {
  readonly metadata?: Partial<Tunnel['metadata']>
  readonly spec?: Partial<Tunnel['spec']>
  readonly status?: Tunnel['status']
}

/** Returns a Tunnel as a store would. */
export function tunnel({ metadata, spec, status }: TunnelTraits = {}): Tunnel {
  return {
    apiVersion: 'mooring.dev/v1alpha1',
    kind: 'Tunnel',
    metadata: {
      ...{ name: 'web', namespace: 'acme--prod', uid: 'uid-of-web', resourceVersion: '3', generation: 1 },
      creationTimestamp: '2026-01-01T00:00:00Z',
      finalizers: [FINALIZER],
      ...metadata,
    },
    spec: { regionId: 1, config: TunnelConfig.parse({}), ...spec },
    status,
  }
}

/** Fields that differ from those of an active endpoint with two edges. */
export interface EndpointTraits {
  readonly metadata?: Partial<TunnelEndpoint['metadata']>
  readonly spec?: Partial<TunnelEndpoint['spec']>
  readonly status?: TunnelEndpoint['status']
}

/** Returns a TunnelEndpoint as a store would. */
export function tunnelEndpoint({ metadata, spec, status }: EndpointTraits = {}): TunnelEndpoint {
  return {
    apiVersion: 'mooring.dev/v1alpha1',
    kind: 'TunnelEndpoint',
    metadata: {
      ...{ name: 'default', uid: 'uid-of-default', resourceVersion: '3', generation: 1 },
      creationTimestamp: '2026-01-01T00:00:00Z',
      ...metadata,
    },
    spec: {
      ...{ region: REGION_ID, domain: 'tunnel.example', sshHost: 'ssh.example', active: true, replicas: 2 },
      ...{ ports: { ssh: 22_222, http: 28_080, https: 28_443 }, publicHttpPort: 80, publicHttpsPort: 443 },
      ...{ certificates: 'perTunnel', issuer: 'local' },
      ...spec,
    },
    status,
  }
}

/** Fields that differ from those of a new password of the tunnel `web`. */
export interface PasswordTraits {
  readonly metadata?: Partial<TunnelPassword['metadata']>
  readonly spec?: Partial<TunnelPassword['spec']>
  readonly status?: TunnelPassword['status']
}

/** Returns a TunnelPassword, created by kubectl, as a store would. */
export function tunnelPassword({ metadata, spec, status }: PasswordTraits = {}): TunnelPassword {
  const name = metadata?.name ?? 'p'
  return {
    apiVersion: 'mooring.dev/v1alpha1',
    kind: 'TunnelPassword',
    metadata: {
      ...{ name, namespace: 'acme--prod', uid: `uid-of-${name}`, resourceVersion: '3', generation: 1 },
      creationTimestamp: '2026-01-01T12:00:00Z',
      ...metadata,
    },
    spec: { tunnelRef: { name: 'web' }, sha256: 'a'.repeat(64), expiresAt: '2030-01-01T00:00:00Z', ...spec },
    status,
  }
}

/** Fields that differ from those of a new token of a viewer. */
export interface ApiTokenTraits {
  readonly metadata?: Partial<ApiToken['metadata']>
  readonly spec?: Partial<ApiToken['spec']>
}

/** Returns an ApiToken, created by kubectl, as a store would. */
export function apiToken({ metadata, spec }: ApiTokenTraits = {}): ApiToken {
  return {
    apiVersion: 'mooring.dev/v1alpha1',
    kind: 'ApiToken',
    metadata: {
      ...{ name: 'ci', namespace: 'acme--prod', uid: 'uid-of-ci', resourceVersion: '3', generation: 1 },
      creationTimestamp: '2026-01-01T12:00:00Z',
      ...metadata,
    },
    spec: { displayName: 'ci', role: 'viewer', expiresAt: '2030-01-01T00:00:00Z', sha256: '0'.repeat(64), ...spec },
    status: undefined,
  }
}

/** Fields that differ from those of a new webhook. */
export interface WebhookTraits {
  readonly metadata?: Partial<TunnelWebhook['metadata']>
  readonly spec?: Partial<TunnelWebhook['spec']>
  readonly status?: TunnelWebhook['status']
}

/** Returns a TunnelWebhook, created by kubectl, as a store would. */
export function tunnelWebhook({ metadata, spec, status }: WebhookTraits = {}): TunnelWebhook {
  const name = metadata?.name ?? 'w'
  return {
    apiVersion: 'mooring.dev/v1alpha1',
    kind: 'TunnelWebhook',
    metadata: {
      ...{ name, namespace: 'acme--prod', uid: `uid-of-${name}`, resourceVersion: '3', generation: 1 },
      creationTimestamp: '2026-01-01T12:00:00Z',
      ...metadata,
    },
    spec: {
      tunnelRef: { name: 'web' },
      ...{
        url: 'https://example.com/hook',
        events: ['tunnel.connected', 'tunnel.disconnected'],
        enabled: true,
        secretVersion: 1,
      },
      ...spec,
    },
    status,
  }
}
