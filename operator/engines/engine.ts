import type { Family } from '../../crds/motor.ts'

/** Path of the calls of the API that list and install the extensions of a database. */
export type ExtensionCalls = '/v1/instances/{id}/extensions' | '/v1/databases/{id}/extensions'

/** Address and credentials by which the operator logs in to one server as its administrator. */
export interface AdminTarget {
  readonly host: string
  readonly port: number
  /**
   * Address for the administrator alone: connections of tenants cannot use it up. Absent for a server without one. While it is unreachable,
   * the administrator uses `host` and `port`.
   */
  readonly adminAddress?: { readonly host: string; readonly port: number } | undefined
  readonly user: string
  readonly password: string
  /** PEM of the CA that signed the server's certificate; absent on loopback. */
  readonly ca?: string | undefined
  /** Client certificate and key of the administrator, in PEM; absent where the server does not require them. */
  readonly client?: { readonly certificate: string; readonly key: string } | undefined
  /** Local address of the operator's connections. Absent: the choice of the machine. */
  readonly source?: string | undefined
  /** Ranges whose clients {@link EngineAdmin.admit} always admits: those of the cluster's pods, or of this machine. Absent: none. */
  readonly insiders?: readonly string[] | undefined
  /** Local address of the edges' connections. Absent: the choice of the machine. */
  readonly edgeSource?: string | undefined
  /** Whether clients reach the server by a port that a container publishes on loopback, so that it does not see their addresses. */
  readonly isPublished?: boolean | undefined
  /** Path of the API whose calls install extensions, which a rejected CREATE EXTENSION names. Absent: that of shared databases. */
  readonly extensionCalls?: ExtensionCalls | undefined
}

/** Limits of one tenant that the engine itself enforces. */
export interface Limits {
  readonly connections: number
}

/** Credentials of a tenant on one server. */
export interface Tenant {
  /** Name of both the database and the login: `[a-z][a-z0-9]{0,21}`. */
  readonly name: string
  readonly password: string
}

/** Bounds on tenants' sessions that the operator enforces from outside, because a tenant may change every setting of its own sessions. */
export interface SessionBounds {
  /** Maximum running time of a statement, in ms. */
  readonly statementMs: number
  /** Maximum time that an open transaction is idle, in ms. */
  readonly idleTransactionMs: number
  /** Maximum size of a tenant's database and its temporary files together, in bytes. */
  readonly sizeBytes: number
}

/** What a tenant was suspended for: what it did to all tenants of its server. */
export const SuspensionCause = {
  /** A statement that neither a cancellation nor the end of its session ended. */
  statement: 'statement',
  /** Locks that fill the server's table of locks. */
  locks: 'locks',
  /** Notifications that fill the server's queue. */
  notifications: 'notifications',
  /** Writes that grow the catalogs of all databases. */
  catalogs: 'catalogs',
  /** Connections far above its limit. */
  connections: 'connections',
  /** Operations that ran when the server ended for lack of memory. */
  memory: 'memory',
} as const
export type SuspensionCause = (typeof SuspensionCause)[keyof typeof SuspensionCause]

/** Tenant whose logins are rejected until the next sweep restores its password, or for ten minutes for {@link SuspensionCause.memory}. */
export interface Suspension {
  readonly name: string
  readonly cause: SuspensionCause
}

/** What the watchdog did to sessions past their bounds. */
export interface Enforced {
  /** Number of statements cancelled. */
  readonly cancelled: number
  /** Number of sessions ended. */
  readonly ended: number
  /** Tenants that this check suspended, or found suspended with a statement that goes on. Absent when there are none. */
  readonly suspended?: readonly Suspension[]
  /** Whether work for others waits for a statement that nothing ends, so that the server must be restarted. */
  readonly needsRestart?: boolean
}

/** State of a tenant's login; the server rejects logins of a disabled one. */
export const LoginState = { absent: 'absent', enabled: 'enabled', disabled: 'disabled' } as const
export type LoginState = (typeof LoginState)[keyof typeof LoginState]

/** State of one tenant in the catalog of the server. */
export interface TenantState {
  readonly database: boolean
  readonly login: LoginState
}

/** Snapshot of the catalog of one server. */
export interface Catalog {
  /** Tenants by name, including those with only a login or only a database. */
  readonly tenants: ReadonlyMap<string, TenantState>
  /** Number of databases of the warm pool that are ready to be claimed. */
  readonly spare: number
  /** Names of incomplete or discarded databases and roles, and of requests on MySQL, that {@link EngineAdmin.tidy} would remove. */
  readonly leftovers: readonly string[]
}

/** Initial content of a new or reset database: empty, or a copy of another tenant's database on the same server. */
export interface Origin {
  /** Name of the tenant to copy; absent for an empty database. */
  readonly template?: string | undefined
}

/** Extension whose files a server has. */
export interface Extension {
  readonly name: string
  readonly version: string
}

/** Extension that was not installed, with the reason. */
export interface RefusedExtension {
  readonly name: string
  /** `conflict`: an object of the tenant has a name that the extension needs. */
  readonly reason: 'unavailable' | 'conflict'
  /** Explanation for the tenant. */
  readonly message: string
}

/** Extensions of a tenant's database after an installation. */
export interface InstalledExtensions {
  /** Names of all extensions in the database that the engine does not have by itself, sorted. */
  readonly installed: readonly string[]
  readonly refused: readonly RefusedExtension[]
}

/** Measured values of a server with one tenant. Counters rise from a start of the server on. */
export interface Measured {
  /** Number of connections of the tenant. */
  readonly connections: number
  /** Bytes of the tenant's database on disk. */
  readonly sizeBytes: number
  /** Counter of ended transactions, of reads and writes in an engine whose single operations are no transactions. */
  readonly transactions: number
  /** Counters of page reads, and of those that the cache did not have. */
  readonly pages: { readonly reads: number; readonly misses: number }
  /** Statements of at least 1 s: a counter, or the number of those that run now in an engine that does not count them. */
  readonly slow: { readonly total: number } | { readonly running: number }
}

export const EngineCode = {
  /** The server cannot be reached, is starting, or ended the connection. The caller should retry. */
  unavailable: 'engine_unavailable',
  /** The template cannot be copied while sessions are open on it or write to it. */
  templateInUse: 'template_in_use',
  /** The template is not on this server. */
  templateMissing: 'template_missing',
  /** The template has an object that cannot be copied within bounds; the message names the object. */
  templateNotCopyable: 'template_not_copyable',
  /** The server rejected the tenant's login. */
  loginRefused: 'login_refused',
  /** The server has extensions or settings that break the isolation of tenants. */
  unsafe: 'server_unsafe',
  /** Any other error of the engine; `cause` has the original error. */
  failed: 'engine_failed',
} as const

/**
 * Administration of one running server. Every method is idempotent and checks the catalog before it acts, so that the caller may
 * repeat it after a crash. All methods throw MooringError with a code of {@link EngineCode}. No message, log line or server log
 * contains a password.
 *
 * Each engine manages its own warm pool, because families create databases differently: PostgreSQL claims a prepared database by
 * renaming it; MySQL and MariaDB cannot rename, but create in milliseconds; MongoDB creates on first write and its cost is the SCRAM
 * derivation.
 */
export interface EngineAdmin extends AsyncDisposable {
  /** Returns the version that the server reports, such as `15.4`. */
  version(): Promise<string>
  /** Revokes privileges that the engine grants by default (docs/isolation.md). The operator calls it once per start, before any claim. */
  harden(): Promise<void>
  /** Reads the whole catalog. */
  catalog(): Promise<Catalog>
  /** Reads the state of one tenant, without the rest of the catalog. */
  find(name: string): Promise<TenantState>
  /** Creates an isolated database and an enabled login with this password. Keeps an existing database and sets its login and password. */
  claim(tenant: Tenant, limits: Limits, origin: Origin): Promise<void>
  /**
   * Gives the only tenant of a restored dedicated server this name: renames its database and its login, and ends its sessions. Does nothing on a
   * server without tenants. The password stays the former one until {@link EngineAdmin.claim}.
   */
  adopt(name: string): Promise<void>
  /**
   * Logs in over the network as the tenant; where {@link EngineAdmin.admit} excludes the operator's own address, checks the catalog instead.
   * @throws `login_refused`
   */
  verify(tenant: Tenant): Promise<void>
  /** Replaces the password, and ends every session that was opened with another one. The login stays enabled or disabled. */
  setPassword(tenant: Tenant): Promise<void>
  /** Returns the names of the tenants whose login has another password than the given one: a tenant may change its own. */
  findChangedPasswords(tenants: readonly Tenant[]): Promise<readonly string[]>
  enableLogin(name: string): Promise<void>
  /** Blocks new logins and ends every session. On PostgreSQL a session that nothing ends goes on; `enforce` finds it. */
  disableLogin(name: string): Promise<void>
  /**
   * Ends all sessions and replaces the database by an empty one or a new copy. The login and its password stay. `owner`: as for
   * {@link EngineAdmin.drop}.
   */
  reset(name: string, origin: Origin, owner?: string): Promise<void>
  /**
   * Blocks logins, ends sessions, drops database and login, and returns once the catalog has neither. Where sessions of tenants keep the server
   * from removing the data within seconds, returns once both are closed for good and the name is free; `tidy` removes them later. `owner`:
   * eight hexadecimal digits under which {@link EngineAdmin.discarded} lists the database until then.
   */
  drop(name: string, owner?: string): Promise<void>
  /**
   * Returns the owners of the discarded databases that still take space, one entry for each database.
   */
  discarded(): Promise<readonly string[]>
  /**
   * Restricts the tenants of a dedicated server to these source addresses and ranges, and to {@link AdminTarget.insiders}; undefined: every
   * source. Rejects their logins from elsewhere, ends their sessions from there, and returns when that is done. Also applies to tenants that
   * are claimed later, once it is called after their claim. The administrator is not restricted.
   * @throws `engine_unavailable` while the server does not have its new rules yet
   */
  admit(sources: readonly string[] | undefined): Promise<void>
  /**
   * Ends the sessions from sources that the last {@link EngineAdmin.admit} excludes, where a login that began before it may complete after it.
   * Returns their number; 0 for an engine that rejects such a login, and before the first `admit`.
   */
  endExcluded(): Promise<number>
  /** Brings the pool to `size` and removes leftovers, one unit of work per call. Returns whether more work remains that can be done now. */
  tidy(size: number): Promise<boolean>
  /** Returns the extensions that the server offers; an empty list for an engine without extensions. */
  extensions(): Promise<readonly Extension[]>
  /**
   * Installs those of the wanted extensions that the tenant's database lacks. Records them in the database, as those that the operator installs
   * again when the tenant drops them.
   */
  installExtensions(name: string, wanted: readonly string[]): Promise<InstalledExtensions>
  /** Returns the names of tenants whose databases have other extensions than the recorded ones. `recorded`: extensions by tenant name. */
  findChangedExtensions(recorded: ReadonlyMap<string, readonly string[]>): Promise<readonly string[]>
  /** Cancels statements and ends sessions of tenants that are past their bounds. */
  enforce(bounds: SessionBounds): Promise<Enforced>
  /**
   * Returns the share of transaction ids, 0 to 1, that is used up; the server stops before it reaches 1. Above a quarter, ends the sessions
   * that keep old ids from being freed. Returns 0 for an engine without transaction ids.
   */
  guardTransactionIds(): Promise<number>
  /** Returns bytes on disk by tenant name. `busy`: only databases with an active session. */
  sizes(which: 'all' | 'busy'): Promise<ReadonlyMap<string, number>>
  /**
   * Creates the login of the exporter beside a dedicated server, with the least rights that the exporter needs (docs/dedicated.md, "Exporters"),
   * or gives it a new password. Undefined drops the login. On MySQL and MariaDB the caller first calls {@link EngineAdmin.admit}, which
   * creates the procedure that the login must be allowed to execute.
   */
  monitor(password: string | undefined): Promise<void>
  /** Measures a server whose only tenant has this name. Returns undefined when the database does not exist. */
  measure(name: string): Promise<Measured | undefined>
}

/** Engine family. A new one needs a folder beside this file and an entry in index.ts. */
export interface Engine {
  readonly family: Family
  /** Returns the connection string, with the password percent-encoded. `caFile`: CA file with which clients verify the server. */
  uri(at: { host: string; port: number; name: string; password: string; caFile: string | undefined }): string
  /**
   * Returns a new password for a tenant: 24 base62 characters from a CSPRNG. Starts expensive key derivations in advance. Contacts no
   * server.
   */
  drawPassword(): string
  /** Returns the administration of a server, which connects at its first call. */
  admin(target: AdminTarget): EngineAdmin
}
