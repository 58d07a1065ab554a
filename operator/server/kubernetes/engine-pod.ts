import type { X509Certificate } from 'node:crypto'
import type { Motor } from '../../../crds/motor.ts'
import type { AdminTarget } from '../../engines/engine.ts'
import type { LoginAnswer } from '../process/programs/program.ts'

/** Mount paths of a pod's volumes. */
export const at = {
  config: '/etc/mooring/config',
  /** `tls.crt`, `tls.key`, `ca.crt`, readable only for the engine's group. */
  certificate: '/etc/mooring/certificate',
  /** `password`; mounted only while the data directory is created. */
  admin: '/etc/mooring/admin',
  /** Output of `initialise` that replaces a directory of the image; `serve` mounts it over that directory. */
  replacement: '/etc/mooring/replacement',
} as const

export interface EngineFiles {
  /** Name of the admin. */
  readonly admin: string
  /** Number of tenants that the server is sized for. */
  readonly capacity: number
  /** Mooring's own databases on the server. */
  readonly own?: readonly string[] | undefined
  /** Directory of the image that `initialise` makes a replacement for. */
  readonly replaced?: string | undefined
}

/** Properties of an engine family that its pods need. Pure except for `logIn` and `reload`. */
export interface EnginePod {
  /** Name of the container. */
  readonly name: string
  readonly port: number
  /** Mount path of the volume with the data. */
  readonly dataMount: string
  /** Files below `at.config` by name, without secrets. */
  files(about: EngineFiles): Readonly<Record<string, string>>
  /** Directory of a motor's official image that `initialise` replaces; absent when there is none. */
  readonly replaces?: ((motor: Motor) => string) | undefined
  /** Command that creates the data directory unless it exists. A crash after any line of it is harmless. */
  readonly initialise: readonly string[]
  readonly serve: readonly string[]
  /** Command that shuts the server down cleanly: run in its container before the container is stopped. */
  readonly stop: readonly string[]
  /** Makes one attempt of at most 2 s. `onCertificate` receives the certificate that the server showed. */
  logIn(target: AdminTarget, onCertificate: (certificate: X509Certificate) => void): Promise<LoginAnswer>
  /** Makes the server reload its configuration and certificate. No session ends. @throws errors of the driver */
  reload(target: AdminTarget): Promise<void>
  /** Whether a line of the engine's log may be shown as the reason of a failure: it has no statement and no tenant's data. */
  isShowable(line: string): boolean
}
