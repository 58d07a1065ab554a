import type { Budget } from '../channels/receive-window.ts'
import type { EdgeClock } from '../clock.ts'
import type { MinuteCounter } from '../counters.ts'
import type { ServerSlots } from '../database/server-slots.ts'
import type { LoginRoutes } from '../route.ts'
import type { Session } from '../sessions.ts'
import type { SshLimits } from './limits.ts'
import type { PublicAddress } from './sentences.ts'
import type { RefusedLogin } from './user-auth.ts'
import type { HostKeyRing } from './wire/algorithms.ts'

/** What all connections of a server share. `Connection`: class of the connections. */
export interface SharedDeps<Connection> {
  readonly ring: HostKeyRing
  readonly routes: LoginRoutes
  readonly limits: SshLimits
  readonly failures: { readonly bySource: MinuteCounter; readonly bySourceAndTunnel: MinuteCounter }
  /** Connections that began to exchange keys and ended without a login, by source. */
  readonly unfinished: MinuteCounter
  readonly growth: Budget
  readonly slots: ServerSlots
  readonly date: EdgeClock['date']
  address(): PublicAddress
  sessionsOf(hostname: string): number
  loggedIn(connection: Connection): void
  /** The session begins (`true`) or ends (`false`) serving its tunnel. */
  serving(connection: Connection, session: Session, serves: boolean): void
  /** The client has answered a {@link Connection.probe}. */
  alive(session: Session): void
  refused(connection: Connection, login: RefusedLogin): void
  /** Handling of the client's data failed. */
  failed(error: unknown): void
  /** Called once, when the connection has ended. */
  ended(connection: Connection): void
}
