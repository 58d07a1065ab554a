import { isTargetAllowed } from '../../crds/tunnel-config.ts'
import { type ReachedTunnel, sentences } from './sentences.ts'
import { performance } from 'node:perf_hooks'
import type { Channel, ChannelEvents } from '../channels/channel.ts'
import type { Origin, Session } from '../sessions.ts'
import { refusedChannel } from '../channels/channel-table.ts'
import type { ClientService, ServiceDeps } from './client-service.ts'
import type { SshLimits } from './limits.ts'
import { parseTarget, throughSocks } from './socks.ts'
import type { GlobalRequest } from './wire/messages.ts'

/** Forward that a client requests, with its spelling (RFC 4254, section 7.1). */
export interface Forward {
  readonly host: string
  readonly port: number
}

/** Port that a client must request; the edge maps public ports to it. */
const PORT = 80
/** Hosts that mean any address: stock clients send them when the user names none. */
const OWN = ['', 'localhost', '*']

/** Returns the sentence for a rejected forward; undefined when it is accepted. */
export function forwardRefusal(requested: Forward, tunnel: ReachedTunnel): string | undefined {
  const { route } = tunnel
  const host = requested.host.toLowerCase()
  if (!OWN.includes(host) && host !== route.hostname && host !== route.host.toLowerCase())
    return sentences.otherHost(requested.host, tunnel)
  if (requested.port !== PORT) return sentences.otherPort(requested.port, tunnel)
  return isTargetAllowed(route.config) ? undefined : sentences.otherTarget
}

export interface ForwardingDeps extends ServiceDeps {
  readonly limits: Pick<SshLimits, 'forwardGraceMs' | 'nextForwardGraceMs'>
}

/** Maximum wait for the first reply after a forward. */
const ANSWER_MS = 500
/** Minimum interval between two lines about an unreachable target. */
const COMPLAINT_MS = 30_000

/** The one forward of a connection (RFC 4254, section 7.1), and the session that serves its tunnel through it. */
export class Forwarding implements ClientService {
  readonly #deps: ForwardingDeps
  #forward: Forward | undefined
  #session: Session | undefined
  #serves = false
  #grantedAt = 0
  /** Time at which the client cancelled its last forward, or 0: it has `nextForwardGraceMs` for another one. */
  #cancelledAt = 0
  #complainedAt = -Infinity

  constructor(deps: ForwardingDeps) {
    this.#deps = deps
  }

  /** Whether the client has an accepted forward. */
  get granted(): boolean {
    return this.#forward !== undefined
  }

  get session(): Session | undefined {
    return this.#session
  }

  /** Handles a request; returns whether it succeeded. The sentence for a rejected forward has been sent. */
  handle(request: GlobalRequest, now: number): boolean {
    switch (request.name) {
      case 'tcpip-forward':
        return this.#ask({ host: request.bindHost, port: request.bindPort })
      case 'cancel-tcpip-forward':
        return this.#cancel({ host: request.bindHost, port: request.bindPort }, now)
      case 'streamlocal-forward@openssh.com':
        return this.#refuseSocket(request.path)
      default:
        return false
    }
  }

  #ask(requested: Forward): boolean {
    const tunnel = this.#deps.tunnel()
    if (tunnel === undefined) return false
    const refusal = this.#forward ? sentences.secondForward : forwardRefusal(requested, tunnel)
    if (refusal === undefined) this.#forward = requested
    else this.#refuse(refusal)
    return refusal === undefined
  }

  /** Rejects a forward of a Unix socket on the server. */
  #refuseSocket(path: string): false {
    const tunnel = this.#deps.tunnel()
    if (tunnel) this.#refuse(sentences.socket(path, tunnel))
    return false
  }

  /**
   * Ends the connection with a sentence, because clients show no other text. While the first forward serves, the sentence goes to the
   * terminal instead.
   */
  #refuse(refusal: string): void {
    if (this.#serves) this.#deps.terminals.complain(refusal)
    else this.#deps.close('forward_refused', refusal)
  }

  #cancel({ host, port }: Forward, now: number): boolean {
    if (this.#forward?.host !== host || this.#forward.port !== port) return false
    this.stop()
    this.#cancelledAt = now
    return true
  }

  /** Starts the session after the reply to the forward was sent. */
  begin(now: number): void {
    const tunnel = this.#deps.tunnel()
    const forward = this.#forward
    if (!tunnel || !forward || this.#session) return
    const { id, clientIp, since, channels, line, terminals } = this.#deps
    this.#session = {
      id,
      hostname: tunnel.route.hostname,
      clientIp,
      login: tunnel.login,
      since,
      get channels() {
        return channels.size - terminals.count
      },
      open: (origin, events) => this.#open(forward, origin, events),
      notify: (line) => terminals.notify(line),
      close: (reason, sentence) => this.#deps.close(reason, sentence),
    }
    this.#grantedAt = now
    line.measure(now, (ms) => {
      channels.roundTripMs = ms
      this.#serve()
    })
  }

  /** Starts a session without an answer, and closes a connection without a forward. `loggedInAt`: time of the login. */
  tick(now: number, loggedInAt: number): void {
    // Some clients do not answer unknown requests.
    if (now - this.#grantedAt > ANSWER_MS) this.#serve()
    if (this.#forward) return
    const { forwardGraceMs, nextForwardGraceMs } = this.#deps.limits
    const isLate = this.#cancelledAt > 0 ? now - this.#cancelledAt > nextForwardGraceMs : now - loggedInAt > forwardGraceMs
    const tunnel = isLate ? this.#deps.tunnel() : undefined
    if (tunnel) this.#deps.close('no_forward', sentences.forwardGrace(tunnel))
  }

  direct(): boolean {
    return false
  }

  /** Shows in the terminal, at most twice a minute, that the target is unreachable. */
  targetRefused(now: number): void {
    if (now - this.#complainedAt < COMPLAINT_MS) return
    this.#complainedAt = now
    this.#deps.terminals.complain(sentences.targetRefused)
  }

  /** Sentence for a forward that is not authorized any more. */
  get refusal(): string | undefined {
    const tunnel = this.#deps.tunnel()
    return tunnel && this.#forward && forwardRefusal(this.#forward, tunnel)
  }

  stop(): void {
    const session = this.#session
    const served = this.#serves
    this.#session = undefined
    this.#forward = undefined
    this.#serves = false
    if (session && served) this.#deps.serving(session, false)
  }

  /**
   * Reports the session as serving. Some clients (Go's) refuse a channel that follows the reply to their forward at once, before they
   * have registered it: the session serves after the next reply of the client.
   */
  #serve(): void {
    if (this.#serves || !this.#session) return
    this.#serves = true
    this.#deps.serving(this.#session, true)
  }

  #open(forward: Forward, origin: Origin, events: ChannelEvents): Channel {
    const { channels } = this.#deps
    const config = this.#deps.tunnel()?.route.config
    if (config?.target === undefined) return channels.open(forward, origin, events)
    const target = parseTarget(config.target)
    if (!target || !isTargetAllowed(config)) return refusedChannel(events, 'prohibited')
    const onRefused = () => this.targetRefused(performance.now())
    return throughSocks({ target, events, onRefused }, (inner) => channels.open(forward, origin, inner))
  }
}
