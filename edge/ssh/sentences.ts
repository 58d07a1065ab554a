import type { Route } from '../route.ts'
import type { Refusal, Revocation } from './login.ts'
import type { TerminalText } from './terminal.ts'

/** Text of a client's that goes back to its terminal: nothing that a terminal would act upon. */
const shown = (text: string) => JSON.stringify(text.slice(0, 80).replace(/[^\x20-\x7e]/g, '?'))

const seconds = (ms: number) => `${Math.round(ms / 1000)} s`

/** All that clients show their users: stock ssh explains nothing by itself. In ASCII: clients in other locales escape the rest. */
export const sentences = {
  /** One for all of them, so that nobody learns which tunnels there are and what guards them. */
  notAccepted:
    'Mooring: this login is not accepted. Check the hostname, your key or password, the authentication mode, and the address that you come from.',
  welcome: ({ url }: Route) => `Mooring: ${url} leads to this connection once it forwards port 80.`,
  tries:
    'Mooring: too many login attempts on one connection. With many keys in an agent, name the right one: ssh -o IdentitiesOnly=yes -i FILE.',
  loginGrace: (ms: number) => `Mooring: no login within ${seconds(ms)}.`,
  handshakes: 'Mooring: too many connections from your address that have not logged in. Try again in a moment.',
  busy: 'Mooring: this edge has as many connections as it takes. Try again in a moment.',
  forwardGrace: ({ hostname }: Route) =>
    `Mooring: nothing is forwarded on this connection. Add -R ${hostname}:80:localhost:PORT.`,
  otherHost: (host: string, { hostname }: Route) =>
    `Mooring: ${shown(host)} is not the tunnel of this login. Forward with -R ${hostname}:80:localhost:PORT.`,
  otherPort: (port: number, { hostname }: Route) =>
    `Mooring: a tunnel forwards port 80, not ${port}. Use -R ${hostname}:80:localhost:PORT.`,
  socket: (path: string, { hostname }: Route) =>
    `Mooring: a tunnel forwards port 80, not the socket ${shown(path)}. Use -R ${hostname}:80:localhost:PORT.`,
  otherTarget:
    'Mooring: the target of this tunnel is another host than yours, which its setting forwardToOtherHosts does not allow.',
  targetRefused:
    'Mooring: a visitor came, but your client could not reach the target of this tunnel. Check that it runs where -R leads.',
  secondForward: 'Mooring: one forward a connection. Connect once more for another one.',
  secondSession: 'one session at a time',
  noSubsystem: (name: string) =>
    `Mooring: there is no ${shown(name)} here. A connection forwards port 80 (-R), and runs nothing.`,
  onlyForwards: 'Mooring forwards remote ports (-R) only',
  keepalive: 'Mooring: no answer to keepalives.',
  replaced: 'Mooring: a newer connection serves this tunnel, and this one did not answer.',
  protocol: 'Mooring: that is not how SSH is spoken.',
  overrun: 'Mooring: more data than the window of the channel allows.',
  rekey: 'Mooring: the exchange of new keys did not end.',
  stopping: 'Mooring: this edge stops. Connect again.',
  refused(refusal: Refusal): string {
    if (refusal === 'rate') return 'Mooring: too many failed logins from your address. Try again in a minute.'
    if (refusal === 'too_many_sessions') return 'Mooring: this tunnel has as many connections as it may have.'
    return refusal === 'expired' ? 'Mooring: this password has expired. Issue a new one.' : sentences.notAccepted
  },
  revoked: (why: Revocation): string => REVOKED[why],
} as const

const REVOKED: Readonly<Record<Revocation, string>> = {
  tunnel_deleted: 'Mooring: this tunnel was deleted, or has expired.',
  ip_denied: 'Mooring: the tunnel no longer takes connections from your address.',
  auth_mode: 'Mooring: the tunnel no longer takes this kind of login.',
  key_removed: 'Mooring: the key of this login was removed from the tunnel.',
  password_revoked: 'Mooring: the password of this login was revoked.',
  password_expired: 'Mooring: the password of this login has expired.',
}

/** What a session channel shows. */
export function terminalText(route: Route, forwarding: boolean): TerminalText {
  const { url } = route
  if (!forwarding) return { lines: [`${url} is the address of this tunnel.`], refusal: sentences.forwardGrace(route) }
  return {
    lines: [`${url} leads to this connection. Press ctrl-C to end it.`, 'No shell runs here; ssh -N asks for none.'],
    refusal: undefined,
  }
}
