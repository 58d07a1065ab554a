import type { Family } from '../../crds/motor.ts'

/** How the operator reaches one server as its admin. */
export interface AdminTarget {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly password: string
  /** PEM of the CA that signed the server's certificate; absent on loopback. */
  readonly ca?: string | undefined
  /** Certificate and key by which the server knows the administrator, PEM; absent where its address is enough. */
  readonly client?: { readonly certificate: string; readonly key: string } | undefined
}

/** Caps that the engine itself enforces on a tenant. */
export interface Limits {
  readonly connections: number
}

/** What a tenant is called: the same name for its database and its login (surface, section 3: `[a-z][a-z0-9]{0,21}`). */
export interface Tenant {
  readonly name: string
  readonly password: string
}

/** Bounds that a server keeps tenants' sessions to from outside: a tenant may change every setting of its own sessions. */
export interface SessionBounds {
  /** Longest running time of a statement, in ms. */
  readonly statementMs: number
  /** Longest time in which an open transaction does nothing, in ms. */
  readonly idleTransactionMs: number
  /** Most bytes that a tenant's database and its temporary files may take together. */
  readonly sizeBytes: number
}

/** What was done about sessions past their bounds. */
export interface Enforced {
  /** Statements cancelled. */
  readonly cancelled: number
  /** Sessions ended. */
  readonly ended: number
}

export const LoginState = { absent: 'absent', enabled: 'enabled', disabled: 'disabled' } as const
export type LoginState = (typeof LoginState)[keyof typeof LoginState]

/** One tenant as the server's own catalog has it. */
export interface TenantState {
  readonly database: boolean
  readonly login: LoginState
}

/** All that the catalog of one server says, read in one go. */
export interface Catalog {
  /** Tenants by name; one with only a login or only a database is there too. */
  readonly tenants: ReadonlyMap<string, TenantState>
  /** Databases of the warm pool that are ready to be claimed. */
  readonly spare: number
  /** Names of half-made or discarded things that {@link EngineAdmin.tidy} would remove. */
  readonly leftovers: readonly string[]
}

/** Where a new or reset database starts from: empty, or a copy of another tenant's database on the same server. */
export interface Origin {
  /** Name of the tenant to copy. */
  readonly template?: string | undefined
}

/** An extension that a server's files offer. */
export interface Extension {
  readonly name: string
  readonly version: string
}

/** Why an extension was not installed. `conflict`: an object of the tenant has a name that it needs. */
export interface RefusedExtension {
  readonly name: string
  readonly reason: 'unavailable' | 'conflict'
  /** A sentence for the tenant. */
  readonly message: string
}

export const EngineCode = {
  /** The server cannot be reached, is starting, or ended the connection. Try again. */
  unavailable: 'engine_unavailable',
  /** Sessions are open on the template, so it cannot be copied now. */
  templateInUse: 'template_in_use',
  /** The template is not on this server. */
  templateMissing: 'template_missing',
  /** The tenant's login was refused: `verify` found it not to work. */
  loginRefused: 'login_refused',
  /** The server's files would let a tenant become superuser. */
  unsafe: 'server_unsafe',
  /** Anything else the engine said; `cause` has it. */
  failed: 'engine_failed',
} as const

/**
 * The admin's side of one running server. Every call is idempotent and looks before it acts, so that any of them may be
 * repeated after a crash in its middle. All throw MooringError with a code of {@link EngineCode}. No message, log line or
 * server log ever holds a password.
 *
 * How each family does it differs: PostgreSQL claims a prepared database by renaming it; MySQL and MariaDB cannot rename, but
 * create in milliseconds; MongoDB creates on first write and its cost is the SCRAM derivation. So the pool is the engine's own affair.
 */
export interface EngineAdmin extends AsyncDisposable {
  /** What the server itself reports, e.g. `15.4`. */
  version(): Promise<string>
  /** Closes what the engine leaves open by default (docs/isolation.md). Called once per start of the operator, before any claim. */
  harden(): Promise<void>
  catalog(): Promise<Catalog>
  /** One tenant, without reading the whole catalog. */
  find(name: string): Promise<TenantState>
  /** Makes database and login with this password, isolated and enabled. What exists is kept, its login and password are set right. */
  claim(tenant: Tenant, limits: Limits, origin: Origin): Promise<void>
  /** Logs in from outside as the tenant and runs a statement. @throws `login_refused` */
  verify(tenant: Tenant): Promise<void>
  /** Replaces the password, and ends every session that was opened with another one. The login stays enabled or disabled. */
  setPassword(tenant: Tenant): Promise<void>
  /** Names of the tenants whose login has another password than the one given: a tenant may change its own. */
  findChangedPasswords(tenants: readonly Tenant[]): Promise<readonly string[]>
  enableLogin(name: string): Promise<void>
  /** No new logins, and every session ended. */
  disableLogin(name: string): Promise<void>
  /** Replaces the database by an empty one (or a new copy); the login and its password stay. Sessions are ended. */
  reset(name: string, origin: Origin): Promise<void>
  /** Blocks logins, ends sessions, drops database and login, and returns once the catalog has neither. */
  drop(name: string): Promise<void>
  /** Brings the pool to `size` and removes leftovers. Does one unit of work a call; returns whether more is to be done. */
  tidy(size: number): Promise<boolean>
  /** The extensions that the server offers; none for an engine without extensions. */
  extensions(): Promise<readonly Extension[]>
  /** Installs in the tenant's database what is missing of these extensions. Returns those that could not be installed. */
  installExtensions(name: string, wanted: readonly string[]): Promise<readonly RefusedExtension[]>
  /** Names of the tenants, of those given with the extensions that they are to have, whose databases were found to lack some. */
  findMissingExtensions(wanted: ReadonlyMap<string, readonly string[]>): Promise<readonly string[]>
  /** Cancels statements and ends sessions of tenants that are past their bounds. */
  enforce(bounds: SessionBounds): Promise<Enforced>
  /**
   * Part, 0 to 1, of the transaction ids that are used up before the server has to stop; ends what keeps old ones from being freed when it
   * is past a quarter. 0 for an engine without such a bound.
   */
  guardTransactionIds(): Promise<number>
  /** Bytes on disk by tenant name. `busy`: only of those with a session that does something. */
  sizes(which: 'all' | 'busy'): Promise<ReadonlyMap<string, number>>
}

/** One engine family. Adding one is one file beside this and one line in index.ts. */
export interface Engine {
  readonly family: Family
  /** Connection string. `password` is percent-encoded by this function; `caFile` names the file of the CA that clients check the server by. */
  uri(at: { host: string; port: number; name: string; password: string; caFile: string | undefined }): string
  /**
   * A new password of a tenant, 24 base62 characters from a CSPRNG. What takes long to derive from it is done before it is asked for, where
   * there was time. Reaches no server.
   */
  drawPassword(): string
  /** Nothing is dialled before the first call. */
  admin(target: AdminTarget): EngineAdmin
}
