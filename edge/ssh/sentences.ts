import type { Route } from '../route.ts'
import type { Refusal, Revocation } from './login.ts'

/** Text of a client's terminal. */
export interface TerminalText {
  readonly lines: readonly string[]
  /** Sentence with which the terminal ends at once; undefined: it stays open until the user ends it. */
  readonly refusal: string | undefined
}

/** Public addresses of this edge for clients and visitors. */
export interface PublicAddress {
  readonly sshHost: string
  readonly sshPort: number
  readonly httpsPort: number
}

/** Tunnel with its public address. */
export interface ReachedTunnel {
  readonly route: Route
  readonly address: PublicAddress
}

/** URL for visitors of this edge, with the port unless it is the default. */
const urlOf = ({ route, address }: ReachedTunnel) => `${route.url}${address.httpsPort === 443 ? '' : `:${address.httpsPort}`}`

/**
 * URL and target of a tunnel. A server does not learn the target of a plain -R (RFC 4254, section 7.1): the edge knows only a target
 * that is set in the tunnel's `target`.
 */
const arrow = (tunnel: ReachedTunnel) => `${urlOf(tunnel)} -> ${tunnel.route.config.target ?? 'the target named in your -R'}`

/** Command that opens a database, short enough to be typed. The usual port of the engine is on both sides. */
function databaseCommand({ route, address }: ReachedTunnel): string {
  const port = route.database?.port ?? 0
  return `ssh -N ${portOption(address)}-L ${port}:db:${port} ${route.hostname}@${address.sshHost}`
}

const portOption = ({ sshPort }: PublicAddress) => (sshPort === 22 ? '' : `-p ${sshPort} `)

/** Command that connects a tunnel, short enough to be typed. */
function command({ route, address }: ReachedTunnel): string {
  const forward = route.config.target === undefined ? '80:localhost:3000' : '80'
  return `ssh ${portOption(address)}-R ${forward} ${route.hostname}@${address.sshHost}`
}

/** Quotes a client's text for its terminal, without control characters. */
const shown = (text: string) => JSON.stringify(text.slice(0, 80).replace(/[^\x20-\x7e]/g, '?'))

/** Names the database of a login. */
const databaseOf = ({ route }: ReachedTunnel) => `database ${route.name} of ${route.namespace.replace('--', '/')}`

const seconds = (ms: number) => `${Math.round(ms / 1000)} s`

/**
 * All texts that clients show their users: stock ssh explains nothing by itself. ASCII only: clients in other locales escape the rest.
 */
export const sentences = {
  /** One sentence for all causes, so that a client does not learn which tunnels exist and how they are protected. */
  notAccepted:
    'Mooring: this login is not accepted. Check the hostname, your key or password, the authentication mode, and the address that you come from.',
  /**
   * The only text that a client without a session channel (`ssh -N`) shows of a working connection: it is sent before the login is
   * confirmed.
   */
  welcome: (tunnel: ReachedTunnel) =>
    tunnel.route.database
      ? `Mooring: ${databaseOf(tunnel)}, as db:${tunnel.route.database.port} in -L. It forwards no ports to you (-R).`
      : `Mooring: ${arrow(tunnel)}, once this connection forwards port 80.`,
  tries:
    'Mooring: too many login attempts on one connection. With many keys in an agent, name the right one: ssh -o IdentitiesOnly=yes -i FILE.',
  /** @param most maximum number of hostnames in the list */
  severalTunnels: (hostnames: readonly string[], most: number) =>
    `Mooring: several tunnels list this key. Log in as the hostname of one, HOSTNAME@...: ${hostnames.slice(0, most).join(', ')}${hostnames.length > most ? ' and others' : ''}.`,
  loginGrace: (ms: number) => `Mooring: no login within ${seconds(ms)}.`,
  handshakes: 'Mooring: too many connections from your address that have not logged in. Try again in a moment.',
  busy: 'Mooring: this edge has reached its limit of connections. Try again in a moment.',
  forwardGrace: (tunnel: ReachedTunnel) => `Mooring: this connection forwards nothing: -R is missing. Type: ${command(tunnel)}`,
  otherHost: (host: string, tunnel: ReachedTunnel) =>
    `Mooring: ${shown(host)} is not the tunnel of this login. Type: ${command(tunnel)}`,
  otherPort: (port: number, tunnel: ReachedTunnel) => `Mooring: a tunnel forwards port 80, not ${port}. Type: ${command(tunnel)}`,
  socket: (path: string, tunnel: ReachedTunnel) =>
    `Mooring: a tunnel forwards port 80, not the socket ${shown(path)}. Type: ${command(tunnel)}`,
  otherTarget:
    'Mooring: the target of this tunnel is another host than yours, which its setting forwardToOtherHosts does not allow.',
  targetRefused:
    'Mooring: a visitor came, but your client could not reach the target of this tunnel. Check that it runs where -R leads.',
  secondForward: 'Mooring: one forward a connection. Connect once more for another one.',
  secondSession: 'one session at a time',
  noSubsystem: (name: string) => `Mooring: there is no ${shown(name)} here. A connection forwards ports, and runs nothing.`,
  onlyForwards: 'Mooring forwards remote ports (-R) only',
  remoteForward: (tunnel: ReachedTunnel) =>
    `Mooring: this login opens a database and forwards no ports to you: leave -R out. Type: ${databaseCommand(tunnel)}`,
  otherDatabase: (target: string, tunnel: ReachedTunnel) =>
    `Mooring: this login opens db:${tunnel.route.database?.port ?? 0} alone, not ${shown(target)}`,
  databaseIdle: (ms: number) =>
    `Mooring: no connection to the database for ${Math.round(ms / 60_000)} min. Connect again when you need it.`,
  databaseDown: 'Mooring: the database server does not answer; its status says why',
  databaseChannels: 'Mooring: too many open connections to this database, or to all of its organization',
  keepalive: 'Mooring: no answer to keepalives.',
  replaced: 'Mooring: a newer connection serves this tunnel, and this one did not answer.',
  protocol: 'Mooring: SSH protocol error.',
  overrun: 'Mooring: more data than the window of the channel allows.',
  rekey: 'Mooring: the exchange of new keys timed out.',
  stopping: 'Mooring: this edge is stopping. Connect again.',
  refused(refusal: Refusal): string {
    if (refusal === 'rate') return 'Mooring: too many failed logins from your address. Try again in a minute.'
    if (refusal === 'too_many_sessions') return 'Mooring: this tunnel has reached its limit of connections.'
    return refusal === 'expired' ? 'Mooring: this password has expired. Issue a new one.' : sentences.notAccepted
  },
  revoked: (why: Revocation, isDatabase = false): string => (isDatabase ? REVOKED_OF_DATABASE[why] : undefined) ?? REVOKED[why],
} as const

const REVOKED_OF_DATABASE: Readonly<Partial<Record<Revocation, string>>> = {
  tunnel_deleted: 'Mooring: the SSH tunnel of this database was taken away, or the database was deleted.',
  ip_denied: 'Mooring: the firewall rules of this database no longer allow your address.',
}

const REVOKED: Readonly<Record<Revocation, string>> = {
  tunnel_deleted: 'Mooring: this tunnel was deleted, or has expired.',
  ip_denied: 'Mooring: the tunnel no longer takes connections from your address.',
  auth_mode: 'Mooring: the tunnel no longer takes this kind of login.',
  key_removed: 'Mooring: the key of this login was removed from the tunnel.',
  password_revoked: 'Mooring: the password of this login was revoked.',
  password_expired: 'Mooring: the password of this login has expired.',
}

const END_IT = 'Press ctrl-C to end it. No shell runs here; ssh -N asks for none.'

/** Returns the text of a session channel. */
export function terminalText(tunnel: ReachedTunnel, forwarding: boolean): TerminalText {
  if (tunnel.route.database) {
    const address = `127.0.0.1:${tunnel.route.database.port}`
    const lines = [
      `${databaseOf(tunnel)} is at ${address} of your machine while this command runs: ${databaseCommand(tunnel)}`,
      END_IT,
    ]
    return { lines, refusal: undefined }
  }
  if (!forwarding) return { lines: [], refusal: sentences.forwardGrace(tunnel) }
  return {
    lines: [arrow(tunnel), END_IT],
    refusal: undefined,
  }
}
