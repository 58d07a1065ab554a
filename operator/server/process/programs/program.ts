import type { KeyAlgorithm } from '../../../certificates/local-ca.ts'
import type { AdminTarget } from '../../../engines/engine.ts'
import type { EngineAccess } from '../../access.ts'
import type { EngineSize } from '../../../engines/size.ts'
import type { AdminCredentials } from '../../runtime.ts'
import { DATA_FD } from '../spawn/proc.ts'

/** Directories of a command. Most are descriptors that an engine's processes inherit, which cannot traverse the real paths. */
export const at = {
  data: `/proc/self/fd/${DATA_FD}`,
  /** Configuration directory of a server. */
  config: `/proc/self/fd/${DATA_FD + 1}`,
  log: `/proc/self/fd/${DATA_FD + 2}`,
  /** File with the admin's password and a newline, without a name; for the program that creates a data directory. */
  password: `/proc/self/fd/${DATA_FD + 1}`,
  /** Second directory of a program that copies: not the data directory under construction. */
  other: `/proc/self/fd/${DATA_FD + 1}`,
  /** Placeholder in the arguments of a command: the absolute directory of the installation. */
  installation: '{installation}',
} as const

/** Command of an engine. */
export interface Command {
  /** Path of the program, relative to the installation; absolute for a program of the system. */
  readonly file: string
  readonly args: readonly string[]
}

/** Command that creates a data directory. */
export interface Initialisation extends Command {
  /** Returns its standard input, without secrets. Absent: it has none. */
  readonly input?: (installation: string) => Promise<string>
}

/** Certificate, key and CA as PEM. `certificate` is valid for the listen address. */
export interface EngineCertificate {
  readonly key: string
  readonly certificate: string
  readonly ca: string
}

export interface ConfigFile {
  readonly name: string
  readonly content: string
  /** Whether only the engine's user may read the file: owned by it, mode 0600. */
  readonly secret?: boolean
}

/** Desired configuration of a server. */
export interface DesiredConfig {
  readonly listen: string
  readonly port: number
  /** Port for the administrator alone, on the host at which Mooring dials the server (address.ts). Absent: there is none. */
  readonly adminPort?: number | undefined
  /** Name of the admin. */
  readonly admin: string
  /** Password of the admin, for an engine that adopts it at each start or derives secrets of its own from it. */
  readonly password: string
  /** Number of tenants that the server is sized for. */
  readonly capacity: number
  /** Size of a dedicated server. */
  readonly size?: EngineSize | undefined
  readonly certificate: EngineCertificate
  /** Whether the server archives its write-ahead log. Only engines with point-in-time recovery do. */
  readonly archives?: boolean | undefined
  /** Sources that a dedicated server admits. Absent: it is not restricted. */
  readonly access?: EngineAccess | undefined
  /** Whether the server may use named shared memory (shm_overview(7)); otherwise it uses files in its data directory. */
  readonly sharedMemory: boolean
}

/** Desired state that access rules depend on. */
export type AccessConfig = Pick<DesiredConfig, 'listen' | 'admin' | 'access'>

/** Result of the admin's login. `notYet`: no listener, or still starting. `code` is the driver's or engine's. */
export type LoginAttempt =
  { readonly login: 'accepted' } | { readonly login: 'notYet' } | { readonly login: 'refused'; readonly code: string }

/** Commands that turn a copy of a blank into a server's data directory. */
export interface Cloneable {
  /**
   * Sets the password of the copy's admin. Fails with a status other than 0; its standard input `input` holds no plain password. Absent for
   * an engine that adopts the password at each start.
   */
  setPassword?(admin: AdminCredentials): Promise<{ readonly command: Command; readonly input: string }>
  /** Makes a data directory survive a power cut. For a program with this command, `initialise` does not do that. */
  readonly flush: Command
}

/** Commands that recover the files of a backup. */
export interface Recovery {
  /** Recovers the files to their moment, and sets the password of the admin. Fails with a status other than 0. */
  readonly command: Command
  /** Standard input of `command`, without a plain password. */
  readonly input: string
  /** Makes the data directory survive a power cut. */
  readonly flush: Command
}

/** Properties of an engine family that the process runtime needs. Only `trim`, `clear`, `attend`, `mainPid`, `logIn` and `input` do I/O. */
export interface EngineProgram {
  /** Whether the program resolves paths in its data directory, so that its user must be able to traverse them. */
  readonly needsPath?: boolean
  /**
   * Commands that create a data directory with `user` as its admin, in order of preference; the first success counts. None for an engine that
   * starts on an empty directory, and whose admin `logIn` creates.
   */
  initialise(user: string): readonly Initialisation[]
  /** Removes files that no server needs and each new database would copy. No server has run on `data` yet. */
  trim(data: string): Promise<void>
  /** Absent when data directories cannot be copied; `initialise` then creates each of them. */
  readonly cloneable?: Cloneable
  /** Returns the commands that recover the files of a backup. Absent for an engine without point-in-time recovery. */
  recover?(admin: AdminCredentials): Promise<Recovery>
  /** Algorithm of the key of the certificate that the server shows off loopback. Default: elliptic. */
  readonly key?: KeyAlgorithm
  /** Whether a server has a port for the administrator alone. It must not be reachable from other machines. Absent: none has. */
  hasAdminPort?(server: { readonly version: string; readonly listen: string }): boolean
  /** Content of the config directory, written at each start. */
  configure(desired: DesiredConfig): readonly ConfigFile[]
  /** File of {@link configure} with the access rules, which a running server loads again. Absent: the rules are in its data. */
  accessFile?(desired: AccessConfig): ConfigFile
  readonly serve: Command
  /** Removes files that a killed server leaves in its data directory and that would prevent the next start. */
  clear?(data: string): Promise<void>
  /** Does work in the data directory that the running server cannot do, until the signal aborts. Never rejects. */
  attend?(data: string, signal: AbortSignal): Promise<void>
  /** Pid that the engine wrote into its data directory. Untrusted: a tenant that compromised the engine may have written it. */
  mainPid(data: string): Promise<number | undefined>
  /** Makes one attempt of at most 2 s, with a real login. May complete the set-up of a server that has just started. */
  logIn(target: AdminTarget): Promise<LoginAttempt>
  readonly signals: {
    readonly reload: NodeJS.Signals
    /** Signal that ends sessions and shuts down cleanly. */
    readonly fast: NodeJS.Signals
    /** Signal that ends the server as a crash would. */
    readonly immediate: NodeJS.Signals
  }
  /**
   * Local address of the admin's connections to a server on IPv4, which the server's limit of connections exempts. Absent: the choice of the
   * machine.
   */
  readonly adminSource?: string
  /** Whether a server that listens off loopback requires TLS of connections from loopback, too. */
  readonly tlsOnly?: boolean
  /** Whether the server may stop accepting logins without ending, so that it has to be watched. */
  readonly mayHang?: boolean
  /** Whether a line of the engine's log may be shown as the reason of a failure: it has no statement and no tenant's data. */
  isShowable(line: string): boolean
}
