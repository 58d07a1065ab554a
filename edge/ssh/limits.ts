/** Limits of the SSH server. Times are in milliseconds. */
export interface SshLimits {
  /** Connections in total. */
  readonly connections: number
  /** Connections of one source that have not logged in. */
  readonly handshakesPerSource: number
  /** Age from which the oldest of them is closed when a source exceeds that limit. */
  readonly giveWayMs: number
  /**
   * Connections of one source in a minute that began to exchange keys and ended without a login; each costs some milliseconds
   * (CVE-2002-20001). Above it, the connections of the source exchange keys in a queue.
   */
  readonly unfinishedPerSource: number
  /** Key exchanges per second of a source that exceeds that limit or the limit of failed logins. */
  readonly slowHandshakesPerSecond: number
  /** Simultaneous connections that are rejected with a sentence; more are closed without one. */
  readonly farewells: number
  /** Time from accept to login, whatever the client sends meanwhile. */
  readonly loginGraceMs: number
  /** Time for the PROXY header of a trusted balancer, and silence after which it counts as sending none. */
  readonly balancerMs: number
  readonly balancerQuietMs: number
  /** Login attempts of one connection; the first `none` request does not count. */
  readonly loginTries: number
  /** Failed logins of one source in a minute, after which its passwords are no longer compared (docs/ssh-logins.md). */
  readonly failedPerSource: number
  /** Failed logins of one source on one tunnel in a minute. */
  readonly failedPerSourceAndTunnel: number
  /** Refused logins of one tunnel that are recorded in a minute, over all sources. */
  readonly refusalsPerTunnel: number
  readonly sessionsPerTunnel: number
  /** Time for a logged-in client to request its first forward; stock clients do so at once. */
  readonly forwardGraceMs: number
  /** Time for a client that has cancelled its forward to request another. */
  readonly nextForwardGraceMs: number
  /** Channels of one session. */
  readonly channels: number
  /** Connections to database servers, of all sessions, those of one organization and those of one database. */
  readonly databaseConnections: number
  readonly connectionsPerOrganization: number
  readonly connectionsPerDatabase: number
  /** Time without a channel to the database, after which its client is disconnected. */
  readonly databaseIdleMs: number
  /** Time for a client whose remote forward a database has rejected to open a channel to it. */
  readonly rejectedForwardMs: number
  /** Time for a database server to take the last bytes of a client that has closed its channel. */
  readonly databaseCloseMs: number
  /** Bytes of one session that were received and not read. */
  readonly unreadBytes: number
  /** Bytes that the windows of all sessions may grow by, for distant clients. */
  readonly windowGrowthBytes: number
  readonly rekeyBytes: number
  readonly rekeyMs: number
  readonly keepaliveMs: number
  /** Keepalives without an answer, after which a client counts as lost. */
  readonly keepaliveMisses: number
  /** Silence after which an older session is closed when a newer one has come. */
  readonly probeMs: number
}

export const DEFAULT_SSH_LIMITS: SshLimits = {
  connections: 20_000,
  handshakesPerSource: 32,
  giveWayMs: 5_000,
  unfinishedPerSource: 300,
  slowHandshakesPerSecond: 10,
  // Each takes up to two seconds to end, and a rejected client may reconnect at once.
  farewells: 1_000,
  // With the time to read the sentence and the timer's interval, a connection is closed within 20 s.
  loginGraceMs: 17_000,
  balancerMs: 10_000,
  balancerQuietMs: 2_000,
  // A key that is only offered costs next to nothing, and agents hold many keys.
  loginTries: 20,
  failedPerSource: 60,
  failedPerSourceAndTunnel: 30,
  // Hostnames are public, and the journal keeps records for 90 days. The limit covers all failures of two sources.
  refusalsPerTunnel: 60,
  sessionsPerTunnel: 10,
  // A user who forgot -R needs an early message, and clients without a session channel show only the end.
  forwardGraceMs: 5_000,
  nextForwardGraceMs: 30_000,
  channels: 1_000,
  // Each needs a file descriptor. No database accepts more than 500 connections of its tenant.
  databaseConnections: 8_000,
  // One organization cannot take the connections of all others.
  connectionsPerOrganization: 4_000,
  connectionsPerDatabase: 1_000,
  // A temporary password lives as long.
  databaseIdleMs: 4 * 3_600_000,
  rejectedForwardMs: 30_000,
  databaseCloseMs: 10_000,
  unreadBytes: 32 * 1024 * 1024,
  windowGrowthBytes: 128 * 1024 * 1024,
  rekeyBytes: 1024 ** 3,
  rekeyMs: 3_600_000,
  keepaliveMs: 10_000,
  keepaliveMisses: 3,
  probeMs: 2_000,
}
