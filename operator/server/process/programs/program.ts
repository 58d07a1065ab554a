import type { AdminTarget } from '../../../engines/engine.ts'
import type { AdminCredentials } from '../../runtime.ts'
import { DATA_FD } from '../spawn/proc.ts'

/** Descriptors that an engine's processes inherit: they cannot traverse the path of the directories. */
export const at = {
  data: `/proc/self/fd/${DATA_FD}`,
  /** Configuration directory of a server. */
  config: `/proc/self/fd/${DATA_FD + 1}`,
  log: `/proc/self/fd/${DATA_FD + 2}`,
  /** File with the admin's password and a newline, without a name; for the program that creates a data directory. */
  password: `/proc/self/fd/${DATA_FD + 1}`,
  /** Second directory of a program that copies: not the data directory under construction. */
  other: `/proc/self/fd/${DATA_FD + 1}`,
} as const

/** Command of an engine; `file` is relative to the installation. */
export interface Command {
  readonly file: string
  readonly args: readonly string[]
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
  /** Name of the admin. */
  readonly admin: string
  /** Number of tenants that the server is sized for. */
  readonly capacity: number
  readonly certificate: EngineCertificate
  /** Whether the server may use named shared memory (shm_overview(7)); otherwise it uses files in its data directory. */
  readonly sharedMemory: boolean
}

/** Result of the admin's login. `notYet`: no listener, or still starting. `code` is the driver's or engine's. */
export type LoginAnswer =
  { readonly login: 'accepted' } | { readonly login: 'notYet' } | { readonly login: 'refused'; readonly code: string }

/** Commands that turn a copy of a blank into a server's data directory. */
export interface Cloneable {
  /** Sets the password of the copy's admin. Fails with a status other than 0; its standard input `input` holds no plain password. */
  setPassword(admin: AdminCredentials): Promise<{ readonly command: Command; readonly input: string }>
  /** Makes a data directory survive a power cut. For a program with this command, `initialise` does not do that. */
  readonly flush: Command
}

/** Properties of an engine family that the process runtime needs. Pure except for `trim`, `mainPid` and `logIn`. */
export interface EngineProgram {
  /** Commands that create a data directory with `user` as its admin, in order of preference; the first success counts. */
  initialise(user: string): readonly Command[]
  /** Removes files that no server needs and each new database would copy. No server has run on `data` yet. */
  trim(data: string): Promise<void>
  /** Absent when data directories cannot be copied; `initialise` then creates each of them. */
  readonly cloneable?: Cloneable
  /** Content of the config directory, written at each start. */
  configure(desired: DesiredConfig): readonly ConfigFile[]
  readonly serve: Command
  /** Pid that the engine wrote into its data directory. Untrusted: a tenant that compromised the engine may have written it. */
  mainPid(data: string): Promise<number | undefined>
  /** Makes one attempt of at most 2 s, with a real login. */
  logIn(target: AdminTarget): Promise<LoginAnswer>
  readonly signals: {
    readonly reload: NodeJS.Signals
    /** Signal that ends sessions and shuts down cleanly. */
    readonly fast: NodeJS.Signals
    /** Signal that ends the server as a crash would. */
    readonly immediate: NodeJS.Signals
  }
  /** Whether a line of the engine's log may be shown as the reason of a failure: it has no statement and no tenant's data. */
  isShowable(line: string): boolean
}
