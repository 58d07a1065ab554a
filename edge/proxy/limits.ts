/** Limits of the proxy. Times in milliseconds, sizes in bytes. */
export interface ProxyLimits {
  /** Time for a visitor to send the head of a request, and for a TLS handshake. */
  readonly headMs: number
  /** Time that a kept-alive connection waits for its next request. */
  readonly keepAliveMs: number
  /** Time for the backend to begin its response. */
  readonly upstreamMs: number
  /**
   * Maximum time from a request on a reused upstream connection to the end of that connection, for the request to be sent again: the
   * connection had ended before. It is longer than a round trip to a client. On a full line the end arrives later, and the request
   * fails; the measured round trip does not show that, since it is measured on an empty line.
   */
  readonly staleMs: number
  /** Time that a request waits for a client to reconnect. */
  readonly holdMs: number
  /** Time without progress of a response whose visitor has ended its side: most such visitors have disconnected, some still read. */
  readonly halfClosedMs: number
  /** Time in which a body must progress by `slowBytes`, in either direction. */
  readonly slowMs: number
  readonly slowBytes: number
  /**
   * After a response to an incomplete request: maximum time in which the rest is read and dropped, and maximum time while none of it
   * arrives.
   */
  readonly lingerMs: number
  readonly lingerIdleMs: number
  /** Idle times of upstream connections: see {@link Pools}. */
  readonly idleUpstreamMs: number
  readonly spareUpstreamMs: number
  /** Simultaneous requests of one tunnel. */
  readonly requestsPerTunnel: number
  /**
   * Simultaneous connections of visitors to all tunnels. Between this number and twice this number, requests are answered with an
   * error.
   */
  readonly connections: number
  /** Simultaneous connections of one source: an IPv4 address or an IPv6 network. Trusted balancers are exempt. */
  readonly connectionsPerSource: number
  /** Simultaneous streams of one HTTP/2 connection, and the streams that it may reset in ten seconds. */
  readonly streams: number
  readonly resets: number
  /** Interval of the checks for overdue connections. */
  readonly sweepMs: number
  /** Time for visitors to receive the last response of a stopping edge. */
  readonly farewellMs: number
  /** Cached TLS contexts. */
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
  farewellMs: 100,
  contexts: 1_500,
}
