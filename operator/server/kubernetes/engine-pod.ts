import type { X509Certificate } from 'node:crypto'
import type { Motor } from '../../../crds/motor.ts'
import type { AdminTarget } from '../../engines/engine.ts'
import type { LoginAnswer } from '../process/programs/program.ts'

/** Where a pod's volumes are mounted. */
export const at = {
  config: '/etc/mooring/config',
  /** `tls.crt`, `tls.key`, `ca.crt`, readable for the engine's group and nobody else. */
  certificate: '/etc/mooring/certificate',
  /** `password`; there only while the data directory is made. */
  admin: '/etc/mooring/admin',
  /** What `initialise` makes of a directory of the image; `serve` has it in that directory's place. */
  replacement: '/etc/mooring/replacement',
} as const

export interface EngineFiles {
  /** Name of the admin. */
  readonly admin: string
  /** Tenants that the server is made for. */
  readonly capacity: number
  /** Databases of Mooring's own on it. */
  readonly own?: readonly string[] | undefined
  /** Directory of the image whose replacement `initialise` makes. */
  readonly replaced?: string | undefined
}

/** All that the pods have to know of an engine family. Pure but for `logIn` and `reload`. */
export interface EnginePod {
  /** Name of the container. */
  readonly name: string
  readonly port: number
  /** Where the volume with the data is mounted. */
  readonly dataMount: string
  /** Files below `at.config`, by name. No secret is in any of them. */
  files(about: EngineFiles): Readonly<Record<string, string>>
  /** Directory of a motor's official image that `initialise` replaces; absent when there is none. */
  readonly replaces?: ((motor: Motor) => string) | undefined
  /** Makes the data directory where there is none; ends when there is one. Any line of it may be the last before a crash. */
  readonly initialise: readonly string[]
  readonly serve: readonly string[]
  /** Ends the server in good order: run in its container before the container is stopped. */
  readonly stop: readonly string[]
  /** One attempt of at most 2 s. `onCertificate` gets the certificate that the server showed. */
  logIn(target: AdminTarget, onCertificate: (certificate: X509Certificate) => void): Promise<LoginAnswer>
  /** Has the server read its configuration and certificate anew. No session ends. @throws what the driver throws */
  reload(target: AdminTarget): Promise<void>
  /** Whether a line of the engine's log may be shown as the reason of a failure: no statement, no tenant's data. */
  isShowable(line: string): boolean
}
