import type { DatabaseServer } from '../../../crds/database-server.ts'
import type { Region } from '../../../crds/region.ts'
import type { EnginePod } from './engine-pod.ts'
import type { PodSettings, ServerSize } from './settings.ts'

export type Exposure = NonNullable<Region['spec']['databases']>['exposure']

/** Desired state of a server that its builders depend on. */
export interface DesiredServer {
  readonly server: DatabaseServer
  readonly engine: EnginePod
  readonly image: string
  readonly size: ServerSize
  /** Directory of the image that is replaced by one of `initialise` (engine-pod.ts). */
  readonly replaced: string | undefined
  readonly exposure: Exposure
  /** Host for callers instead of the Service's own. */
  readonly host: string | undefined
  readonly nodeSelector: Readonly<Record<string, string>>
  readonly settings: PodSettings
  /** Name of the admin, and of the Secret that holds its password under `password`. */
  readonly admin: { readonly user: string; readonly secret: string }
}
