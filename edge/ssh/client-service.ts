import type { RemoteEnd } from '../channels/channel.ts'
import type { ChannelTable } from '../channels/channel-table.ts'
import type { Session } from '../sessions.ts'
import type { ClientTunnel } from './client-login.ts'
import type { LineWatch } from './line-watch.ts'
import type { ClientChannels } from './terminal.ts'
import type { GlobalRequest, Target } from './wire/messages.ts'
import type { Wire } from './wire/wire.ts'

/** Part of a connection that a {@link ClientService} uses. */
export interface ServiceDeps {
  /** Id of the connection and of its session. */
  readonly id: string
  readonly clientIp: string
  /** Time of accept, in milliseconds since the epoch. */
  readonly since: number
  readonly channels: ChannelTable<Wire>
  readonly line: LineWatch
  /** Channels that the client opened itself. */
  readonly terminals: Pick<ClientChannels, 'count' | 'complain' | 'notify'>
  /** Tunnel or database of the client, once it has logged in. */
  tunnel(): ClientTunnel | undefined
  close(reason: string, sentence: string): void
  /** Reports that the session begins (`serves`) or ends. */
  serving(session: Session, serves: boolean): void
}

/** Service that a client gets after its login: the forward of a tunnel, or access to a database. */
export interface ClientService {
  /** Whether the client gets what it logged in for. */
  readonly granted: boolean
  readonly session: Session | undefined
  /** Sentence for a forward that is not authorized any more. */
  readonly refusal: string | undefined
  /** Handles a request and returns whether it succeeded. Sends the sentence for a rejected forward itself. */
  handle(request: GlobalRequest, now: number): boolean
  /** Starts the session. */
  begin(now: number): void
  /** Handles a channel to a host that the client names. Returns false when the service opens none. */
  direct(remote: RemoteEnd, target: Target): boolean
  /** Checks deadlines. `loggedInAt`: time of the login. Times are milliseconds of a monotonic clock. */
  tick(now: number, loggedInAt: number): void
  /** Called when the client could not reach the target of a channel. */
  targetRefused(now: number): void
  /** Ends the session. */
  stop(): void
}
