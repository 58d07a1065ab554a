/** Bounds of the SSH side. Times are in milliseconds. */
export interface SshLimits {
  /** Connections in all. */
  readonly connections: number
  /** Connections of one source that have not logged in. */
  readonly handshakesPerSource: number
  /** Age at which the oldest of them gives way, when a source has as many and one more comes. */
  readonly giveWayMs: number
  /**
   * Connections of one source in a minute that began to exchange keys and ended without a login: each has cost some milliseconds
   * (CVE-2002-20001). More of them exchange keys in a queue.
   */
  readonly unfinishedPerSource: number
  /** Key exchanges a second of a source that has had too many such connections, or failed logins. */
  readonly slowHandshakesPerSecond: number
  /** Connections that are told why they are refused, at a time; more of them are closed without a word. */
  readonly farewells: number
  /** From the accepted connection to the login, whatever the client sends meanwhile. */
  readonly loginGraceMs: number
  /** For a trusted balancer to say whom it speaks for, and how long it may be silent before it is taken for one that does not say. */
  readonly balancerMs: number
  readonly balancerQuietMs: number
  /** Keys, passwords and whatever else one connection may try; a first question what there is does not count. */
  readonly loginTries: number
  /** Failed logins of one source in a minute, after which its passwords are no longer compared (docs/ssh-logins.md). */
  readonly failedPerSource: number
  /** Failed logins of one source on one tunnel in a minute. */
  readonly failedPerSourceAndTunnel: number
  /** Refused logins of one tunnel that are recorded in a minute, whatever their number and that of their sources. */
  readonly refusalsPerTunnel: number
  readonly sessionsPerTunnel: number
  /** How long a logged-in client may do without a first forward: stock clients ask for it at once. */
  readonly forwardGraceMs: number
  /** How long a client that has cancelled its forward may do without another. */
  readonly nextForwardGraceMs: number
  /** Channels of one session. */
  readonly channels: number
  /** Bytes of one session that were received and not read. */
  readonly unreadBytes: number
  /** What the windows of all sessions may grow by, for clients that are far away. */
  readonly windowGrowthBytes: number
  readonly rekeyBytes: number
  readonly rekeyMs: number
  readonly keepaliveMs: number
  /** Keepalives without an answer, after which a client is gone. */
  readonly keepaliveMisses: number
  /** How long an older session may be silent when a newer one has come. */
  readonly probeMs: number
}

export const DEFAULT_SSH_LIMITS: SshLimits = {
  connections: 20_000,
  handshakesPerSource: 32,
  giveWayMs: 5_000,
  unfinishedPerSource: 300,
  slowHandshakesPerSecond: 10,
  // Each may take two seconds to go, and whoever is refused at the door may come again at once.
  farewells: 1_000,
  // With the farewell and the interval of the timer, a connection is gone within 20 s.
  loginGraceMs: 17_000,
  balancerMs: 10_000,
  balancerQuietMs: 2_000,
  // A key that is only asked about costs next to nothing, and people have many of them in their agents.
  loginTries: 20,
  failedPerSource: 60,
  failedPerSourceAndTunnel: 30,
  // Hostnames are public, and the journal keeps records for 90 days. All failures of two sources fit; a person reads no more.
  refusalsPerTunnel: 60,
  sessionsPerTunnel: 10,
  // A user who forgot -R is to be told soon, and clients without a session channel show nothing but the end.
  forwardGraceMs: 5_000,
  nextForwardGraceMs: 30_000,
  channels: 1_000,
  unreadBytes: 32 * 1024 * 1024,
  windowGrowthBytes: 128 * 1024 * 1024,
  rekeyBytes: 1024 ** 3,
  rekeyMs: 3_600_000,
  keepaliveMs: 10_000,
  keepaliveMisses: 3,
  probeMs: 2_000,
}
