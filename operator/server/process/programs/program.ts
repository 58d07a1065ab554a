import type { AdminTarget } from '../../../engines/engine.ts'
import type { AdminCredentials } from '../../runtime.ts'
import { DATA_FD } from '../spawn/proc.ts'

/** What an engine's processes inherit: they cannot traverse the way to these, but are handed them open. */
export const at = {
  data: `/proc/self/fd/${DATA_FD}`,
  /** Of a server. */
  config: `/proc/self/fd/${DATA_FD + 1}`,
  log: `/proc/self/fd/${DATA_FD + 2}`,
  /** Of the program that makes a data directory: a file with the admin's password and a newline, which has no name any more. */
  password: `/proc/self/fd/${DATA_FD + 1}`,
  /** Of a program that copies: the directory that is not a server's in the making. */
  other: `/proc/self/fd/${DATA_FD + 1}`,
} as const

/** `file` is relative to the installation. */
export interface Command {
  readonly file: string
  readonly args: readonly string[]
}

/** PEM, all three. `certificate` is valid for the address that is listened on. */
export interface EngineCertificate {
  readonly key: string
  readonly certificate: string
  readonly ca: string
}

export interface ConfigFile {
  readonly name: string
  readonly content: string
  /** For the engine's eyes only: owned by it, 0600. */
  readonly secret?: boolean
}

/** What a server is to be like. */
export interface Wanted {
  readonly listen: string
  readonly port: number
  /** Name of the admin. */
  readonly admin: string
  /** Tenants it is made for. */
  readonly capacity: number
  readonly certificate: EngineCertificate
  /** Whether it may make shared memory by name (shm_overview(7)); else it has to use files in its data directory. */
  readonly sharedMemory: boolean
}

/** How a login of the admin went. `notYet`: nobody there, or still starting. `code` is the driver's or engine's. */
export type LoginAnswer =
  { readonly login: 'accepted' } | { readonly login: 'notYet' } | { readonly login: 'refused'; readonly code: string }

/** What it takes to make a server's data directory out of a copy of one that no server has run on yet. */
export interface Cloneable {
  /** Gives the copy's admin another password. Fails with a status other than 0; `input`, its standard input, has no plain password. */
  setPassword(admin: AdminCredentials): Promise<{ readonly command: Command; readonly input: string }>
  /** Makes a data directory survive a power cut. Of a program that has this, `initialise` does not. */
  readonly flush: Command
}

/** All that the process runtime has to know of an engine family. Pure but for `trim`, `mainPid` and `logIn`. */
export interface EngineProgram {
  /** Ways to make a data directory with `user` as its admin; the first that works counts. */
  initialise(user: string): readonly Command[]
  /** Takes away what no server needs and every database would be made with. `data` was just made, and nobody has served it. */
  trim(data: string): Promise<void>
  /** Absent: data directories cannot be copied, each is made by `initialise`. */
  readonly cloneable?: Cloneable
  /** Everything in the config directory, written anew at each start. */
  configure(wanted: Wanted): readonly ConfigFile[]
  readonly serve: Command
  /** Pid that the engine itself left in its data directory. Not to be believed: a tenant who broke in may have written it. */
  mainPid(data: string): Promise<number | undefined>
  /** One attempt of at most 2 s, with a real login. */
  logIn(target: AdminTarget): Promise<LoginAnswer>
  readonly signals: {
    readonly reload: NodeJS.Signals
    /** Ends sessions, leaves the data in good order. */
    readonly fast: NodeJS.Signals
    /** As after a crash. */
    readonly immediate: NodeJS.Signals
  }
  /** Whether a line of the engine's log may be shown as the reason of a failure: no statement, no tenant's data. */
  isShowable(line: string): boolean
}
