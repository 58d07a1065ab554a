/** Bounds of the proxy. Times in milliseconds, sizes in bytes. */
export interface ProxyLimits {
  /** For a visitor to complete the head of a request, and a TLS handshake. */
  readonly headMs: number
  /** For a kept connection to wait for its next request. */
  readonly keepAliveMs: number
  /** For the backend to begin its answer. */
  readonly upstreamMs: number
  /**
   * A kept link that ends sooner after a request was sent had ended before: the request may be sent again. Longer than a way to a client and back; but on a
   * line that is full, the news of an end waits behind all else, and comes too late. How long a line is tells nothing about that: it is measured when empty.
   */
  readonly staleMs: number
  /** How long a request waits for a client to come back. */
  readonly holdMs: number
  /** For a response to move on whose visitor has ended its side: most of them have gone, some still read. */
  readonly halfClosedMs: number
  /** A body must move on by `slowBytes` in this time, either way. */
  readonly slowMs: number
  readonly slowBytes: number
  /** After an answer before its request has ended: how long the rest is read and dropped at most, and while none of it comes. */
  readonly lingerMs: number
  readonly lingerIdleMs: number
  /** How long links to backends wait: see {@link Pools}. */
  readonly idleUpstreamMs: number
  readonly spareUpstreamMs: number
  /** Requests of one tunnel at a time. */
  readonly requestsPerTunnel: number
  /** Visitors' connections at a time, of all tunnels. Twice as many are answered that it is too many. */
  readonly connections: number
  /** Those of one source, be it an address or a network of IPv6: nobody takes all there are. Balancers that are trusted may. */
  readonly connectionsPerSource: number
  /** Streams of one HTTP/2 connection at a time, and how many it may reset in ten seconds. */
  readonly streams: number
  readonly resets: number
  /** How often overdue connections are looked for. */
  readonly sweepMs: number
  /** TLS contexts that are kept ready. */
  readonly contexts: number
}

export const PROXY_LIMITS: ProxyLimits = {
  headMs: 10_000,
  keepAliveMs: 60_000,
  upstreamMs: 100_000,
  staleMs: 500,
  holdMs: 2_000,
  halfClosedMs: 10_000,
  slowMs: 60_000,
  slowBytes: 61_440,
  lingerMs: 30_000,
  lingerIdleMs: 5_000,
  idleUpstreamMs: 1_000,
  spareUpstreamMs: 60_000,
  requestsPerTunnel: 1_000,
  connections: 20_000,
  connectionsPerSource: 10_000,
  streams: 128,
  resets: 200,
  sweepMs: 500,
  contexts: 1_500,
}
