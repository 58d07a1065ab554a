import type { DatabaseServer } from '../../crds/database-server.ts'
import type { Motor } from '../../crds/motor.ts'
import type { ServerTls } from '../../crds/formats/server-tls.ts'
import type { AdminTarget } from '../engines/engine.ts'

/** Observed state of one server. */
export type ServerState =
  | { readonly phase: 'absent' }
  /** Not up yet. `message` names what it waits for, if known. */
  | { readonly phase: 'starting'; readonly message?: string }
  /** Accepts connections. `host` and `port` are for callers; `admin` is for the operator. */
  | {
      readonly phase: 'running'
      readonly host: string
      readonly port: number
      /** Host for pods of the cluster; absent outside a cluster. */
      readonly internalHost?: string
      /** Absent: required, except on a loopback host. */
      readonly tls?: ServerTls
      readonly admin: Omit<AdminTarget, 'user' | 'password'>
      /** Password of the exporter beside the server. Absent: there is no exporter, and its login is dropped. */
      readonly exporterPassword?: string | undefined
      /** Reason why the server does not run with its present spec. Absent: it does. */
      readonly held?: Held | undefined
    }
  | { readonly phase: 'failed'; readonly reason: 'MotorUnavailable' | 'Crashed'; readonly message: string }

/** What delays a change of a server's spec. */
export interface Held {
  readonly reason: 'Updating' | 'StorageNotExpandable'
  readonly message: string
}

export interface AdminCredentials {
  readonly user: string
  readonly password: string
}

/**
 * Runtime of database servers: child processes in embedded mode, StatefulSets in a cluster. Level-triggered: `ensure` may be called at any
 * time and repeatedly; it never waits for a server, but returns the present state and calls `onChange` when that changes.
 */
export interface ServerRuntime {
  /** Whether a server with data adopts the password of the credentials at its start. Absent: it keeps its first one. */
  readonly adoptsPassword?: boolean
  /** Motors that can run here, with the version that would run (`14.5.0` for `postgresql-14.4.0` when compatible). */
  motors(): Promise<ReadonlyMap<Motor, { readonly version: string }>>
  /** Starts the server, or adopts one that a former process left running. A crashed server is started again after a back-off. */
  ensure(server: DatabaseServer, credentials: AdminCredentials): Promise<ServerState>
  /** Stops the server and removes its data. @returns true when nothing is left */
  remove(server: DatabaseServer): Promise<boolean>
  /**
   * Ends a running server, by force when it does not end within seconds, and lets it start again. Data stay. Returns when it has ended, or is
   * about to; does nothing for a server that does not run.
   */
  restart(server: DatabaseServer): Promise<void>
  /** Calls `handler` with a server's object name when its state may have changed. */
  onChange(handler: (name: string) => void): void
  /** Admits exactly the present tenants of a server, given by its object name. Absent where no runtime permission depends on tenants. */
  tenantsChanged?(server: string): Promise<void>
  /** Ends the supervision. Child processes are shut down cleanly; pods keep running. Data stays. */
  close(): Promise<void>
}
