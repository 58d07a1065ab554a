import { randomUUIDv7 } from 'node:crypto'
import type { Socket } from 'node:net'
import { performance } from 'node:perf_hooks'
import type { Route } from '../route.ts'
import type { Login, Session } from '../sessions.ts'
import type { Applicant } from './admission.ts'
import { ClientLogin, NO_TEXT } from './client-login.ts'
import { ChannelTable } from '../channels/channel-table.ts'
import { DatabaseAccess } from '../database/database-access.ts'
import { ClientChannels } from './terminal.ts'
import type { ClientService } from './client-service.ts'
import type { SharedDeps } from './connection-deps.ts'
import { Forwarding } from './forwarding.ts'
import { LineWatch } from './line-watch.ts'
import { inBlock, lasting, readAll } from '../reads.ts'
import { sourceKey } from '../counters.ts'
import { Output, BEFORE_LOGIN_BYTES } from '../channels/output.ts'
import { sentences } from './sentences.ts'
import { createUserAuth, type UserAuth } from './user-auth.ts'
import { type AuthRequest, type GlobalRequest, Reason, type WireEvents } from './wire/messages.ts'
import { Wire } from './wire/wire.ts'

/** Dependencies that all connections of a server share. */
export type ConnectionDeps = SharedDeps<Connection>

/** End of a connection. */
export interface End {
  readonly reason: string
  readonly durationMs: number
}

/** Maximum time between the last sentence and the end of the socket, for the client to read the sentence. */
const FAREWELL_MS = 2_000
/** Time after which the key exchange begins without the client's KEXINIT; longer than any known client takes to send it. */
const PATIENCE_MS = 2_000
/**
 * Maximum messages that wait for the end of a key exchange. Channels send nothing meanwhile, so these are replies, and no client needs
 * that many.
 */
const MAX_QUEUED = 10_000

/** Facts about an accepted connection. */
interface Accepted {
  /** Plain address: an IPv4-mapped address is IPv4. */
  readonly clientIp: string
  /** Time of accept, in milliseconds of a monotonic clock. */
  readonly began: number
}

/** SSH connection of one client, from accept to end. */
export class Connection implements WireEvents, Applicant {
  readonly id: string = randomUUIDv7()
  readonly clientIp: string
  readonly sourceKey: string
  /** Time of accept, in milliseconds since the epoch. */
  readonly since: number
  /** Time of accept, in milliseconds of a monotonic clock. */
  readonly began: number
  readonly channels: ChannelTable<Wire>
  readonly #deps: ConnectionDeps
  readonly #socket: Socket
  readonly #output: Output
  readonly #wire: Wire
  readonly #auth: UserAuth
  readonly #line: LineWatch
  readonly #access: () => DatabaseAccess
  #service: ClientService
  #client: ClientLogin | undefined
  #closedAt: number | undefined
  #end: End | undefined

  /** Creates the connection; the key exchange waits for {@link begin}. */
  constructor(socket: Socket, { clientIp, began }: Accepted, deps: ConnectionDeps) {
    this.#deps = deps
    this.#socket = socket
    this.clientIp = clientIp
    this.began = began
    this.sourceKey = sourceKey(this.clientIp)
    this.since = deps.date()
    this.#output = new Output(socket, BEFORE_LOGIN_BYTES)
    this.#wire = new Wire(deps.ring, (data) => this.#output.write(data), this)
    const line = { wire: this.#wire, output: this.#output, limits: deps.limits }
    const terminals = new ClientChannels({
      text: () => this.#client?.terminalText(this.#service.granted) ?? NO_TEXT,
      direct: (remote, target) => this.#service.direct(remote, target),
    })
    this.channels = new ChannelTable({
      ...line,
      growth: deps.growth,
      opening: (...about) => terminals.open(this.channels, ...about),
      overrun: () => this.close('protocol_error', sentences.overrun, Reason.protocolError),
      broken: () => this.broken(),
      refused: () => this.#service.targetRefused(performance.now()),
    })
    this.#line = new LineWatch({ ...line, now: began })
    const service = {
      id: this.id,
      clientIp: this.clientIp,
      since: this.since,
      channels: this.channels,
      line: this.#line,
      terminals,
      tunnel: () => this.#client?.tunnel,
      close: (reason: string, sentence: string) => this.close(reason, sentence),
      serving: (session: Session, serves: boolean) => deps.serving(this, session, serves),
    }
    this.#service = new Forwarding({ ...service, limits: deps.limits })
    this.#access = () => new DatabaseAccess({ ...service, limits: deps.limits, slots: deps.slots, broken: () => this.broken() })
    this.#auth = createUserAuth({
      wire: this.#wire,
      routes: deps.routes,
      source: this.clientIp,
      sourceKey: this.sourceKey,
      failures: deps.failures,
      limits: { tries: deps.limits.loginTries, sessions: deps.limits.sessionsPerTunnel },
      date: deps.date,
      sessionsOf: (hostname) => deps.sessionsOf(hostname),
      accepted: (route, login) => this.#accepted(route, login),
      disconnect: (reason, sentence) => this.#farewell('refused', { reason, sentence }),
    })
    readAll(socket, (chunk) => this.#receive(this.#client ? inBlock(chunk) : lasting(chunk)))
    socket.on('drain', () => this.channels.unblock())
    socket.on('end', () => this.#over('client_disconnected'))
    socket.on('error', () => this.#over('connection_lost'))
    socket.on('close', () => this.#over('connection_lost'))
    this.#wire.start()
  }

  get login(): Login | undefined {
    return this.#client?.login
  }

  get hostname(): string | undefined {
    return this.#client?.hostname
  }

  get session(): Session | undefined {
    return this.#service.session
  }

  get end(): End | undefined {
    return this.#end
  }

  /** Whether the socket is closed. */
  get gone(): boolean {
    return this.#socket.destroyed
  }

  begin(): void {
    this.#guarded(() => this.#wire.proceed())
  }

  giveWay(): void {
    this.close('handshakes', sentences.handshakes, Reason.tooManyConnections)
  }

  /** Ends the connection with a sentence. Idempotent. */
  close(reason: string, sentence: string, code: Reason = Reason.byApplication): void {
    this.#farewell(reason, { reason: code, sentence })
  }

  /** Probes the client; the connection is closed when no answer arrives in time. */
  probe(): void {
    this.#line.probe(performance.now())
  }

  /** Closes the connection when its login or its forward is not authorized any more. */
  recheck(): void {
    if (!this.#client || this.#closedAt !== undefined) return
    const why = this.#client.revocation(this.clientIp, this.#deps.date())
    const { refusal } = this.#service
    if (why) this.close(why, sentences.revoked(why, this.#client.isDatabase))
    else if (refusal) this.close('forward_refused', refusal)
  }

  /** Checks the deadlines; called twice a second. `stalledMs`: delay of this call in milliseconds. */
  tick(now: number, stalledMs: number): void {
    if (this.#closedAt !== undefined) {
      if (now - this.#closedAt > FAREWELL_MS) this.#socket.destroy()
    } else if (this.#client) this.#tickSession(this.#client, now, stalledMs)
    else this.#tickLogin(now)
  }

  #tickLogin(now: number): void {
    const age = now - this.began
    if (age > this.#deps.limits.loginGraceMs) this.close('login_grace', sentences.loginGrace(this.#deps.limits.loginGraceMs))
    else if (age > PATIENCE_MS) this.#guarded(() => this.#wire.beginAnyway())
  }

  #tickSession({ login, at }: ClientLogin, now: number, stalledMs: number): void {
    if (login.authMethod === 'token') this.recheck()
    this.#service.tick(now, at)
    const state = this.#line.tick(now, stalledMs)
    if (state === 'silent') this.close('keepalive_timeout', sentences.keepalive, Reason.connectionLost)
    if (state === 'replaced') this.close('replaced', sentences.replaced)
    if (state === 'stuck') this.close('protocol_error', sentences.rekey, Reason.keyExchangeFailed)
  }

  #receive(chunk: Buffer): void {
    if (this.#closedAt !== undefined) return
    const answered = this.#line.heard(chunk.length, performance.now())
    if (answered && this.session) this.#deps.alive(this.session)
    this.#guarded(() => this.#wire.receive(chunk))
    if (this.#wire.queued > MAX_QUEUED) this.broken()
  }

  /** Runs `work`: no input of a client may end the process. */
  #guarded(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#deps.failed(error)
      this.broken()
    }
  }

  #accepted(route: Route, login: Login): void {
    this.#client = new ClientLogin(route, login, { at: performance.now(), deps: this.#deps })
    this.#output.trust()
    this.#wire.banner(`${sentences.welcome({ route, address: this.#deps.address() })}\r\n`)
    this.#wire.accept()
    this.#deps.loggedIn(this)
    if (!route.database) return
    this.#service = this.#access()
    this.#service.begin(performance.now())
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
      // During a broken key exchange no message can be sent.
      this.#socket.destroy()
    }
  }

  #over(reason: string): void {
    if (this.#closedAt !== undefined) return
    const now = performance.now()
    this.#closedAt = now
    this.#end = { reason, durationMs: Math.round(now - this.began) }
    this.#wire.mute()
    this.#service.stop()
    this.channels.close()
    const refused = this.#client ? undefined : this.#auth.abandoned()
    if (refused) this.#deps.refused(this, refused)
    if (!this.#client && this.#wire.begun) this.#deps.unfinished.add(this.sourceKey)
    this.#deps.ended(this)
    // A client that only ended its side leaves our side open.
    if (reason === 'client_disconnected') this.#socket.end()
    this.#socket.once('close', () => this.#wire.release())
    if (this.#socket.destroyed) this.#wire.release()
  }

  // Messages of the client.

  keysExchanged(first: boolean): void {
    this.#line.rekeyed(performance.now())
    if (first) return
    // A client has no reason to exchange keys again before login, and each exchange costs milliseconds.
    if (!this.#client) this.broken()
    else this.channels.unblock()
  }

  auth(request: AuthRequest): void {
    this.#auth.handle(request)
  }

  global(request: GlobalRequest, wantReply: boolean): void {
    const granted = this.#service.handle(request, performance.now())
    if (wantReply && this.#closedAt === undefined) this.#wire.reply(granted)
    if (granted && request.name === 'tcpip-forward') this.#service.begin(performance.now())
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
