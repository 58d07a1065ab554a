/** Size of a server with one tenant, from which the settings of its engine follow (docs/dedicated.md, "Sizes"). */
export interface EngineSize {
  readonly cpu: number
  readonly memoryMiB: number
  readonly storageGiB: number
}

const CONNECTIONS_MIN = 25
const CONNECTIONS_MAX = 500
/** Memory in MiB for each connection of the tenant. */
const MIB_PER_CONNECTION = 8

/** Maximum number of connections of the tenant of a dedicated server. */
export const connectionsOf = ({ memoryMiB }: Pick<EngineSize, 'memoryMiB'>): number =>
  clamp(memoryMiB / MIB_PER_CONNECTION, CONNECTIONS_MIN, CONNECTIONS_MAX)

/** Returns the value rounded down to a whole number, and limited to the range from `min` to `max`. */
export const clamp = (value: number, min: number, max: number): number => Math.min(max, Math.max(min, Math.floor(value)))

/** Returns a text that is equal for servers with equal settings. When it changes, the server needs a restart. */
export const settingsKey = ({
  size,
  archive,
}: {
  readonly size?: EngineSize | undefined
  readonly archive?: object | undefined
}): string => `${sizeKey(size)}${archive === undefined ? '' : ' archive'}`.trim()

/** Returns a text that is equal for equal sizes. When it changes, the server needs other settings, and so a restart. */
export const sizeKey = (size: EngineSize | undefined): string =>
  size === undefined ? '' : `${size.cpu} ${size.memoryMiB} ${size.storageGiB}`
