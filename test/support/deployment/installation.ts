import type { JWK } from 'jose'

/**
 * Running Mooring under test by the behaviour suite. It is plain data, because one process starts it and others test it. The
 * suite creates its own organizations and tokens and removes them again, so that the installation may be in use by other tests.
 * It must have a high `failedAuthPerMinute`: the suite fails to authenticate often, always from one address.
 */
export interface Installation {
  readonly kind: 'embedded' | 'cluster'
  /** URL of the API: `https://…`, without a path. */
  readonly sharedUrl: string
  readonly dedicatedUrl: string
  /** PEM of the CA of both URLs. */
  readonly ca: string
  /** Id and name of a region that serves `motor`. */
  readonly region: { readonly id: string; readonly name: string }
  readonly motor: string
  /** All motors that the region serves. */
  readonly motors: readonly string[]
  /** Mooring's own issuer with its private key, with which the suite signs valid and forged tokens. */
  readonly issuer: { readonly issuer: string; readonly privateKey: JWK }
  /** Metrics URL of each component, over plain HTTP. */
  readonly metricsUrls: readonly string[]
  /** Log files of each component. */
  readonly logFiles: readonly string[]
}

/** Function that starts an installation: `startEmbeddedInstallation` of mooring.ts or `startClusterInstallation` of cluster.ts. */
export type StartInstallation = () => Promise<StartedInstallation>

export interface StartedInstallation extends AsyncDisposable {
  readonly installation: Installation
}

declare module 'vitest' {
  interface ProvidedContext {
    readonly installation: Installation
  }
}
