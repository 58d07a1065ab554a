import { randomUUIDv7 } from 'node:crypto'
import type { Socket } from 'node:net'
import { plainAddress } from '../../crds/address-list.ts'
import type { Channel, ChannelEvents } from '../channel.ts'
import type { PasswordRoutes, Route, Routes } from '../route.ts'
import type { Login, Origin, Session } from '../session.ts'
import { ChannelTable, refusedChannel } from './channel-table.ts'
import { type Forward, forwardRefusal } from './forwards.ts'
import type { SshLimits } from './limits.ts'
import { revocationOf } from './login.ts'
import { type MinuteCounter, sourceKey } from './login-limits.ts'
import { Output } from './output.ts'
import {
  type AuthRequest,
  type ChannelRequest,
  type GlobalRequest,
  type HostKeyRing,
  OpenFailure,
  Reason,
  Wire,
  type WireEvents,
} from './protocol.ts'
import { LineWatch } from './line-watch.ts'
import type { Budget } from './receive-window.ts'
import { sentences, terminalText } from './sentences.ts'
import { isOwnHost, parseTarget, throughSocks } from './socks.ts'
import { Terminal } from './terminal.ts'
import { createUserAuth, type RefusedLogin, type UserAuth } from './user-auth.ts'

/** What connections have in common. */
export interface ConnectionDeps {
  readonly ring: HostKeyRing
  readonly routes: Routes & PasswordRoutes
  readonly limits: SshLimits
  readonly failures: { readonly bySource: MinuteCounter; readonly bySourceAndTunnel: MinuteCounter }
  readonly growth: Budget
  readonly now: () => number
  sessionsOf(hostname: string): number
  loggedIn(connection: Connection): void
  /** It serves its tunnel from now on; `false`: no more. */
  serving(connection: Connection, session: Session, serves: boolean): void
  /** It has answered a {@link Connection.probe}. */
  alive(session: Session): void
  refused(connection: Connection, login: RefusedLogin): void
  /** What a client sent could not be worked with, or what it led to failed. */
  failed(error: unknown): void
  /** After it, once, when the connection is of no use any more. */
  ended(connection: Connection): void
}

/** How a logged-in connection ended. */
export interface End {
  readonly reason: string
  readonly durationMs: number
}

/** How long a client may take to read what it is told at last. */
const FAREWELL_MS = 2_000
/** Longer than any client thinks before it says which keys it can exchange. */
const PATIENCE_MS = 2_000
const KEY_EXCHANGE_MS = 30_000
/** How long the first answer after a forward is waited for. */
const ANSWER_MS = 500

/** One client, from the first byte to the last. */
export class Connection implements WireEvents {
  readonly id: string = randomUUIDv7()
  readonly clientIp: string
  readonly sourceKey: string
  readonly since: number
  readonly channels: ChannelTable
  readonly #deps: ConnectionDeps
  readonly #socket: Socket
  readonly #output: Output
  readonly #wire: Wire
  readonly #auth: UserAuth
  readonly #line: LineWatch
  readonly #began = performance.now()
  #terminal: Terminal | undefined
  #terminalId: number | undefined
  #forward: Forward | undefined
  #session: Session | undefined
  #serves = false
  #forwardedAt = 0
  #hostname: string | undefined
  #login: Login | undefined
  #loggedInAt = 0
  #closedAt: number | undefined
  #end: End | undefined

  constructor(socket: Socket, deps: ConnectionDeps) {
    this.#deps = deps
    this.#socket = socket
    this.clientIp = plainAddress(socket.remoteAddress ?? '')
    this.sourceKey = sourceKey(this.clientIp)
    this.since = deps.now()
    this.#output = new Output(socket)
    this.#wire = new Wire(deps.ring, (data) => this.#output.write(data), this)
    this.channels = new ChannelTable({ wire: this.#wire, output: this.#output, limits: deps.limits, growth: deps.growth })
    this.#line = new LineWatch({ wire: this.#wire, output: this.#output, limits: deps.limits, now: this.#began })
    this.#auth = createUserAuth({
      ...{ wire: this.#wire, routes: deps.routes, source: this.clientIp, sourceKey: this.sourceKey, failures: deps.failures },
      limits: { tries: deps.limits.loginTries, sessions: deps.limits.sessionsPerTunnel },
      now: deps.now,
      sessionsOf: (hostname) => deps.sessionsOf(hostname),
      accepted: (route, login) => this.#accepted(route, login),
      disconnect: (reason, sentence) => this.#farewell('refused', { reason, sentence }),
    })
    socket.on('data', (chunk) => this.#receive(chunk))
    socket.on('drain', () => this.channels.unblock())
    socket.on('end', () => this.#over('client_disconnected'))
    socket.on('error', () => this.#over('connection_lost'))
    socket.on('close', () => this.#over('connection_lost'))
    this.#wire.start()
  }

  get login(): Login | undefined {
    return this.#login
  }

  get hostname(): string | undefined {
    return this.#hostname
  }

  get session(): Session | undefined {
    return this.#session
  }

  get end(): End | undefined {
    return this.#end
  }

  /** Nothing is left of it. */
  get gone(): boolean {
    return this.#socket.destroyed
  }

  /** Ends it with a sentence. Idempotent. */
  close(reason: string, sentence: string, code: Reason = Reason.byApplication): void {
    this.#farewell(reason, { reason: code, sentence })
  }

  /** Asks whether it is still there; it is closed when it does not say so in time. */
  probe(): void {
    this.#line.probe(performance.now())
  }

  /** Closes it when its login would not be let in any more. */
  recheck(): void {
    if (!this.#login || this.#closedAt !== undefined) return
    const login = { source: this.clientIp, login: this.#login, now: this.#deps.now() }
    const why = revocationOf(this.#route, login)
    if (why) this.close(why, sentences.revoked(why))
  }

  /** What time alone decides; called twice a second. */
  tick(now: number): void {
    if (this.#closedAt !== undefined) {
      if (now - this.#closedAt > FAREWELL_MS) this.#socket.destroy()
    } else if (this.#login === undefined) this.#tickLogin(now)
    else this.#tickSession(now)
  }

  #tickLogin(now: number): void {
    const age = now - this.#began
    if (age > this.#deps.limits.loginGraceMs) this.close('login_grace', sentences.loginGrace(this.#deps.limits.loginGraceMs))
    else if (age > PATIENCE_MS) this.#guarded(() => this.#wire.beginAnyway())
  }

  #tickSession(now: number): void {
    const { keepaliveMs, forwardGraceMs } = this.#deps.limits
    if (this.#login?.authMethod === 'token') this.recheck()
    // Not every client answers what it does not know.
    if (now - this.#forwardedAt > ANSWER_MS) this.#beginServing()
    const route = this.#route
    if (!this.#forward && route && now - this.#loggedInAt > forwardGraceMs)
      this.close('no_forward', sentences.forwardGrace(route))
    const state = this.#line.tick(now, { keepaliveMs, keyExchangeMs: KEY_EXCHANGE_MS })
    if (state === 'silent') this.close('keepalive_timeout', sentences.keepalive, Reason.connectionLost)
    if (state === 'replaced') this.close('replaced', sentences.replaced)
    if (state === 'stuck') this.close('protocol_error', sentences.rekey, Reason.keyExchangeFailed)
  }

  get #route(): Route | undefined {
    return this.#hostname === undefined ? undefined : this.#deps.routes.get(this.#hostname)
  }

  #receive(chunk: Buffer): void {
    if (this.#closedAt !== undefined) return
    const answered = this.#line.heard(chunk.length, performance.now())
    if (answered && this.#session) this.#deps.alive(this.#session)
    this.#guarded(() => this.#wire.receive(chunk))
  }

  /** What a client sends must not end the process, whatever it is. */
  #guarded(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#deps.failed(error)
      this.broken()
    }
  }

  #accepted(route: Route, login: Login): void {
    this.#hostname = route.hostname
    this.#login = login
    this.#loggedInAt = performance.now()
    this.#wire.banner(`${sentences.welcome(route)}\r\n`)
    this.#wire.accept()
    this.#deps.loggedIn(this)
  }

  #farewell(reason: string, { reason: code, sentence }: { reason: Reason; sentence: string }): void {
    if (this.#closedAt !== undefined) return
    this.#guardedFarewell(code, sentence)
    this.#over(reason)
    this.#output.flush()
    this.#socket.end()
  }

  #guardedFarewell(code: Reason, sentence: string): void {
    try {
      this.#wire.disconnect(code, sentence)
    } catch {
      // In the middle of a broken key exchange there is no way to say goodbye.
      this.#socket.destroy()
    }
  }

  #over(reason: string): void {
    if (this.#closedAt !== undefined) return
    const now = performance.now()
    this.#closedAt = now
    this.#end = { reason, durationMs: Math.round(now - this.#began) }
    this.#wire.mute()
    this.#stopServing()
    this.channels.close()
    const refused = this.#login ? undefined : this.#auth.abandoned()
    if (refused) this.#deps.refused(this, refused)
    this.#deps.ended(this)
    // A client that has gone without a word leaves our side open.
    if (reason === 'client_disconnected') this.#socket.end()
    this.#socket.once('close', () => this.#wire.release())
    if (this.#socket.destroyed) this.#wire.release()
  }

  #stopServing(): void {
    const session = this.#session
    const served = this.#serves
    this.#session = undefined
    this.#forward = undefined
    this.#serves = false
    if (session && served) this.#deps.serving(this, session, false)
  }

  // What the client says.

  keysExchanged(first: boolean): void {
    this.#line.rekeyed(performance.now())
    if (!first) this.channels.unblock()
  }

  auth(request: AuthRequest): void {
    this.#auth.handle(request)
  }

  global(request: GlobalRequest, wantReply: boolean): void {
    const done = request.name !== 'other' && this.#forwarding(request.name, { host: request.bindHost, port: request.bindPort })
    if (wantReply && this.#closedAt === undefined) this.#wire.reply(done)
    if (done && request.name === 'tcpip-forward') this.#serve()
  }

  #forwarding(name: 'tcpip-forward' | 'cancel-tcpip-forward', forward: Forward): boolean {
    if (name === 'cancel-tcpip-forward') {
      const known = this.#forward?.host === forward.host && this.#forward.port === forward.port
      if (known) this.#stopServing()
      return known
    }
    const route = this.#route
    if (route === undefined) return false
    if (this.#forward) {
      this.#terminal?.say(sentences.secondForward)
      return false
    }
    const refusal = forwardRefusal(forward, route)
    if (refusal) this.close('forward_refused', refusal)
    else this.#forward = forward
    return refusal === undefined
  }

  #serve(): void {
    const [hostname, login, forward] = [this.#hostname, this.#login, this.#forward]
    if (hostname === undefined || !login || !forward) return
    const { channels } = this
    const terminals = () => (this.#terminal ? 1 : 0)
    const session: Session = {
      ...{ id: this.id, hostname, clientIp: this.clientIp, login, since: this.since },
      get channels() {
        return channels.size - terminals()
      },
      open: (origin, events) => this.#open(forward, origin, events),
      close: (reason, sentence) => this.close(reason, sentence),
    }
    this.#session = session
    this.#forwardedAt = performance.now()
    this.#line.measure(performance.now(), (ms) => {
      channels.roundTripMs = ms
      this.#beginServing()
    })
  }

  /**
   * Some clients (Go's) refuse a channel that comes close upon the answer to their forward, before they have noted it: the first is
   * opened when they have answered something after it.
   */
  #beginServing(): void {
    if (this.#serves || !this.#session) return
    this.#serves = true
    this.#deps.serving(this, this.#session, true)
  }

  #open(forward: Forward, origin: Origin, events: ChannelEvents): Channel {
    const config = this.#route?.config
    if (config?.target === undefined) return this.channels.open(forward, origin, events)
    const target = parseTarget(config.target)
    if (!target || !(config.forwardToOtherHosts || isOwnHost(target))) return refusedChannel(events, 'prohibited')
    return throughSocks(target, events, (inner) => this.channels.open(forward, origin, inner))
  }

  channelOpen({ type, sender, window, maxPacket }: { type: string; sender: number; window: number; maxPacket: number }): void {
    const refuse = (reason: number, why: string) => this.#wire.channels.channelOpenFail(sender, reason, why)
    if (type !== 'session') refuse(OpenFailure.prohibited, sentences.onlyForwards)
    else if (this.#terminal) refuse(OpenFailure.resourceShortage, sentences.secondSession)
    else {
      this.#terminalId = this.channels.add((id) => {
        const terminal = new Terminal({
          ...{ wire: this.#wire, id, remote: { id: sender, window, maxPacket } },
          text: () => this.#terminalText(),
          free: () => this.#freeTerminal(),
        })
        this.#terminal = terminal
        return terminal
      })
    }
  }

  #terminalText(): { lines: readonly string[]; stays: boolean } {
    const route = this.#route
    return { lines: route ? terminalText(route, this.#forward !== undefined) : [], stays: this.#forward !== undefined }
  }

  #freeTerminal(): void {
    if (this.#terminalId !== undefined) this.channels.free(this.#terminalId)
    this.#terminal = undefined
    this.#terminalId = undefined
  }

  channelConfirmed(id: number, remote: { id: number; window: number; maxPacket: number }): void {
    this.channels.at(id)?.confirmed(remote)
  }

  channelRefused(id: number, reason: number): void {
    this.channels.at(id)?.refused(reason)
  }

  channelWindow(id: number, bytes: number): void {
    this.channels.at(id)?.adjusted(bytes)
  }

  channelData(id: number, data: Buffer, extended: boolean): void {
    const end = this.channels.at(id)
    if (end === undefined) this.broken()
    else if (!end.received(data, extended)) this.close('protocol_error', sentences.overrun, Reason.protocolError)
  }

  channelEnded(id: number): void {
    this.channels.at(id)?.eof()
  }

  channelClosed(id: number): void {
    this.channels.at(id)?.close()
  }

  channelRequest(id: number, request: ChannelRequest): void {
    this.channels.at(id)?.request(request)
  }

  pong(): void {
    this.#line.pong(performance.now())
  }

  disconnected(): void {
    this.#over('client_disconnected')
  }

  broken(): void {
    this.close('protocol_error', sentences.protocol, Reason.protocolError)
  }
}
