import type { DatabaseServer } from '../../crds/database-server.ts'
import type { Motor } from '../../crds/motor.ts'
import type { AdminTarget } from '../engines/engine.ts'

/** What a runtime sees of one server now. */
export type ServerState =
  | { readonly phase: 'absent' }
  /** `message` says what it waits for, where that is known. */
  | { readonly phase: 'starting'; readonly message?: string }
  /** It accepts connections. `host` and `port` are the callers'; `admin` is how the operator gets in. */
  | {
      readonly phase: 'running'
      readonly host: string
      readonly port: number
      readonly admin: Omit<AdminTarget, 'user' | 'password'>
    }
  | { readonly phase: 'failed'; readonly reason: 'MotorUnavailable' | 'Crashed'; readonly message: string }

export interface AdminCredentials {
  readonly user: string
  readonly password: string
}

/**
 * Runs database servers: child processes in embedded mode, StatefulSets in a cluster. Level-triggered: `ensure` may be called
 * at any time and again; it never waits for a server to come up, but says where it is and calls `onChange` when that changes.
 */
export interface ServerRuntime {
  /** Whether a server that has data takes the password of the credentials it is started with. Absent: it keeps its first one. */
  readonly adoptsPassword?: boolean
  /** Motors that can be run here, with the version that would really run (`14.5.0` for `postgresql-14.4.0` when compatible). */
  motors(): Promise<ReadonlyMap<Motor, { readonly version: string }>>
  /** Starts the server, or adopts the one that a former process left running. A crashed one is started again, with back-off. */
  ensure(server: DatabaseServer, credentials: AdminCredentials): Promise<ServerState>
  /** Stops it and removes its data. Returns true once nothing is left. */
  remove(server: DatabaseServer): Promise<boolean>
  /** Called with a server's object name when its state may have changed. */
  onChange(handler: (name: string) => void): void
  /** A tenant came to a server, by its object name, or left it: lets in who is on it now. Absent where nothing hangs on that. */
  tenantsChanged?(server: string): Promise<void>
  /** The end of looking after them. Child processes are stopped in good order; pods are left running. Data stays. */
  close(): Promise<void>
}
