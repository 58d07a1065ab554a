import { type Channel, OpenFailure, type RemoteEnd } from '../channels/channel.ts'
import { refusedChannel } from '../channels/channel-table.ts'
import { MIN_PACKET_BYTES } from '../channels/send-queue.ts'
import type { Route } from '../route.ts'
import type { Origin, Session } from '../sessions.ts'
import type { ClientTunnel } from '../ssh/client-login.ts'
import type { ClientService, ServiceDeps } from '../ssh/client-service.ts'
import type { SshLimits } from '../ssh/limits.ts'
import { sentences } from '../ssh/sentences.ts'
import type { GlobalRequest, Target } from '../ssh/wire/messages.ts'
import { ServerDial } from './server-dial.ts'
import type { ServerSlots } from './server-slots.ts'

/** Hosts that stand for the database in `-L`, besides its name in the cluster: what people type, and what GUI clients send. */
const DATABASE_HOSTS: readonly string[] = ['db', 'localhost', '127.0.0.1']

export interface DatabaseAccessDeps extends ServiceDeps {
  readonly limits: Pick<SshLimits, 'databaseIdleMs' | 'rejectedForwardMs' | 'databaseCloseMs'>
  readonly slots: ServerSlots
  /** Called when the client violated the protocol. */
  readonly broken: () => void
}

/**
 * Service of a client that has logged in to the SSH tunnel of a database. It opens channels to the server of this database (RFC 4254,
 * section 7.2) and nothing else. The session begins with the login and needs no forward.
 */
export class DatabaseAccess implements ClientService {
  readonly granted = true
  readonly refusal = undefined
  readonly #deps: DatabaseAccessDeps
  /** Connections to the server. Those of closed channels are no longer in the channel table. */
  readonly #dials = new Set<ServerDial>()
  #session: Session | undefined
  /** Time at which the client last had a channel to the database, or logged in. Times are milliseconds of a monotonic clock. */
  #usedAt = 0
  /** Time of a rejected remote forward, until the client opens a channel to the database. */
  #rejectedAt: number | undefined
  /** Whether the client has opened a channel since the last `tick`. */
  #hasDialled = false

  constructor(deps: DatabaseAccessDeps) {
    this.#deps = deps
  }

  get session(): Session | undefined {
    return this.#session
  }

  begin(now: number): void {
    const { id, clientIp, since, channels, line, terminals } = this.#deps
    const tunnel = this.#deps.tunnel()
    if (!tunnel || this.#session) return
    const session: Session = {
      id,
      hostname: tunnel.route.hostname,
      clientIp,
      login: tunnel.login,
      since,
      get channels() {
        return channels.size - terminals.count
      },
      // A database has no visitors.
      open: (_origin: Origin, events): Channel => refusedChannel(events, 'prohibited'),
      notify: (line) => terminals.notify(line),
      close: (reason, sentence) => this.#deps.close(reason, sentence),
    }
    this.#session = session
    this.#usedAt = now
    line.measure(now, (ms) => {
      channels.roundTripMs = ms
    })
    this.#deps.serving(session, true)
  }

  /**
   * Rejects remote forwards. An open terminal shows the sentence. Without one, a client that opens no channel to the database in
   * `rejectedForwardMs` is disconnected with it: stock ssh requests its `-R` at once, and opens channels of `-L` only when they are used.
   */
  handle(request: GlobalRequest, now: number): boolean {
    const tunnel = this.#deps.tunnel()
    if (!tunnel || !FORWARDS.includes(request.name)) return false
    const { terminals } = this.#deps
    if (terminals.count > 0) terminals.complain(sentences.remoteForward(tunnel))
    else if (this.#channels === 0) this.#rejectedAt = now
    return false
  }

  /** Number of channels to the database, with those that are being opened. */
  get #channels(): number {
    return this.#session?.channels ?? 0
  }

  direct(remote: RemoteEnd, target: Target): boolean {
    const tunnel = this.#deps.tunnel()
    const refusal = tunnel ? refusalOf(tunnel, target, remote) : sentences.protocol
    if (refusal !== undefined) this.#refuse(remote, OpenFailure.prohibited, refusal)
    else if (tunnel) this.#dial(remote, tunnel.route)
    return true
  }

  #dial(remote: RemoteEnd, route: Route): void {
    const { channels, slots, broken, limits } = this.#deps
    const server = route.database?.server
    if (!server) this.#refuse(remote, OpenFailure.connectFailed, sentences.databaseDown)
    else if (!channels.hasRoom || !slots.take(route))
      this.#refuse(remote, OpenFailure.resourceShortage, sentences.databaseChannels)
    else {
      this.#hasDialled = true
      channels.add((id) => {
        const ended = () => {
          this.#dials.delete(dial)
          slots.give(route)
        }
        const dial = new ServerDial({ table: channels, id, remote, server, closeMs: limits.databaseCloseMs, broken, ended })
        this.#dials.add(dial)
        return dial
      })
    }
  }

  #refuse({ id }: RemoteEnd, reason: number, sentence: string): void {
    this.#deps.channels.wire.channels.channelOpenFail(id, reason, sentence)
  }

  /** Disconnects a client that has had no channel for too long. */
  tick(now: number): void {
    const tunnel = this.#deps.tunnel()
    if (this.#channels > 0 || this.#hasDialled) {
      this.#usedAt = now
      this.#rejectedAt = undefined
      this.#hasDialled = false
    }
    if (!tunnel) return
    const { databaseIdleMs, rejectedForwardMs } = this.#deps.limits
    if (this.#rejectedAt !== undefined && now - this.#rejectedAt > rejectedForwardMs)
      this.#deps.close('forward_refused', sentences.remoteForward(tunnel))
    else if (now - this.#usedAt > databaseIdleMs) this.#deps.close('idle', sentences.databaseIdle(databaseIdleMs))
  }

  targetRefused(): void {
    return
  }

  stop(): void {
    for (const dial of this.#dials) dial.cut()
    const session = this.#session
    this.#session = undefined
    if (session) this.#deps.serving(session, false)
  }
}

/** Returns the sentence for a channel to another target than the database, or with too small packets; undefined for an allowed channel. */
function refusalOf(tunnel: ClientTunnel, { host, port }: Target, { maxPacket }: RemoteEnd): string | undefined {
  if (maxPacket < MIN_PACKET_BYTES) return sentences.protocol
  const { database } = tunnel.route
  const name = host.toLowerCase().replace(/\.$/, '')
  const isDatabase = port === database?.port && (DATABASE_HOSTS.includes(name) || name === database.internalHost)
  return isDatabase ? undefined : sentences.otherDatabase(`${host}:${port}`, tunnel)
}

const FORWARDS: readonly string[] = ['tcpip-forward', 'streamlocal-forward@openssh.com']
