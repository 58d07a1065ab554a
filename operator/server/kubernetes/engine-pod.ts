import type { X509Certificate } from 'node:crypto'
import type { Motor } from '../../../crds/motor.ts'
import type { EngineAccess } from '../access.ts'
import type { EngineSize } from '../../engines/size.ts'
import type { AdminTarget } from '../../engines/engine.ts'
import type { KeyAlgorithm } from '../../certificates/local-ca.ts'
import type { LoginAttempt } from '../process/programs/program.ts'

/** Mount paths of a pod's volumes. */
export const at = {
  config: '/etc/mooring/config',
  /** `tls.crt`, `tls.key`, `ca.crt`, and `tls.pem` with certificate and key, readable only for the engine's group. */
  certificate: '/etc/mooring/certificate',
  /** `password`; mounted only for `initialise`. */
  admin: '/etc/mooring/admin',
  /** Output of `initialise`, in a volume of its own; `serve` mounts it at {@link EnginePod.outputAt}. */
  output: '/etc/mooring/output',
  /** Directory of the Unix socket by which the backup agent logs in. */
  socket: '/run/mooring',
  /** Copy of the engine’s program for restore drills, which the backup agent runs. */
  engine: '/run/mooring-engine',
  /** Login of the exporter, mounted only in its container (exporter/containers.ts). */
  exporter: '/etc/mooring/exporter',
  /** Path at which most engines see the output of `initialise`. */
  prepared: '/etc/mooring/prepared',
} as const

export interface EngineFiles {
  /** Name of the admin. */
  readonly admin: string
  /** Port for the administrator alone ({@link EnginePod.adminPort}). Absent: there is none. */
  readonly adminPort?: number | undefined
  /** Number of tenants that the server is sized for. */
  readonly capacity: number
  /** Size of a dedicated server. */
  readonly size?: EngineSize | undefined
  /** Mooring's own databases on the server. */
  readonly own?: readonly string[] | undefined
  /** Path at which `serve` sees the output of `initialise`, if any. */
  readonly outputAt?: string | undefined
  /** Whether the server archives its write-ahead log, and its agent logs in by a Unix socket. */
  readonly archives?: boolean | undefined
  /** Whether an exporter beside the server logs in over loopback. */
  readonly hasExporter?: boolean | undefined
  /** Whether the server has a certificate and requires TLS of every client. */
  readonly tls: boolean
  /** Sources that a dedicated server admits. Absent: it is not restricted. */
  readonly access?: EngineAccess | undefined
}

/** Properties of an engine family that its pods need. Pure except for `logIn` and `reload`. */
export interface EnginePod {
  /** Name of the container. */
  readonly name: string
  readonly port: number
  /** Returns the port for the administrator alone, which no client may reach; undefined for a version without one. Absent: none has one. */
  adminPort?(version: string): number | undefined
  /** Mount path of the volume with the data. */
  readonly dataMount: string
  /** Data directory below the mount; absent for an engine without point-in-time recovery. */
  readonly dataDirectory?: string
  /** Files below `at.config` by name, without secrets. */
  files(about: EngineFiles): Readonly<Record<string, string>>
  /** Name of the file with the server's access rules, which it loads again without a restart. Absent: the rules are in its data. */
  readonly accessFile?: string
  /** Algorithm of the key of the server's certificate. */
  readonly key: KeyAlgorithm
  /**
   * Path at which `serve` mounts the output of `initialise`, which may be a directory of the image that it replaces. `extensionDirectory`:
   * that of the motor in the Region.
   */
  outputAt(motor: Motor, extensionDirectory: string | undefined): string
  /** Command that creates the data directory unless it exists. A crash after any line of it is harmless. */
  readonly initialise: readonly string[]
  readonly serve: readonly string[]
  /** Command that shuts the server down cleanly: run in its container before the container is stopped. */
  readonly stop: readonly string[]
  /** Makes one attempt of at most 2 s. `onCertificate` receives the certificate that the server showed. */
  logIn(target: AdminTarget, onCertificate: (certificate: X509Certificate) => void): Promise<LoginAttempt>
  /** Codes of a refused `logIn` that say what the server lacks. `handshake`: for every failed TLS handshake, where the driver hides its cause. */
  readonly refusals: { readonly password: string; readonly handshake?: string }
  /**
   * Makes the server load its certificate again. No session ends.
   * @returns false when this version loads it only at its start
   * @throws errors of the driver
   */
  reload(target: AdminTarget): Promise<boolean>
  /** Whether a line of the engine's log may be shown as the reason of a failure: it has no statement and no tenant's data. */
  isShowable(line: string): boolean
}
