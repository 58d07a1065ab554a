import type { JWK } from 'jose'

/**
 * A running Mooring that the behaviour suite is put to: plain data, because one process starts it and others test it. The suite makes
 * its own organizations and tokens in it and takes them away again, so nothing else has to be fresh, and others may use it meanwhile.
 * It must be installed with `failedAuthPerMinute` out of the way: the suite fails to authenticate a lot, all from one address.
 */
export interface Installation {
  readonly kind: 'embedded' | 'cluster'
  /** `https://…`, without a path. */
  readonly sharedUrl: string
  readonly dedicatedUrl: string
  /** PEM of the CA that both URLs are checked by. */
  readonly ca: string
  /** Id and name of a region that runs `motor`. */
  readonly region: { readonly id: string; readonly name: string }
  readonly motor: string
  /** Mooring's own issuer with its private key: the suite signs its tokens, good and forged, itself. */
  readonly issuer: { readonly issuer: string; readonly privateKey: JWK }
  /** Where Prometheus would scrape each component, over plain HTTP. */
  readonly metricsUrls: readonly string[]
  /** Files that hold the log of each component. */
  readonly logFiles: readonly string[]
}

/** What starts a home: `startEmbeddedHome` of embedded-home.ts, `startClusterHome` of cluster-home.ts. */
export type StartHome = () => Promise<StartedHome>

export interface StartedHome extends AsyncDisposable {
  readonly installation: Installation
}

declare module 'vitest' {
  interface ProvidedContext {
    readonly installation: Installation
  }
}
