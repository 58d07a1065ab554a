import { z } from 'zod'
import { elderOf, elders } from './elders.ts'
import { boundedMap } from './formats/fields.ts'
import { ServerTls } from './formats/server-tls.ts'
import { ExtensionName, USUAL_EXTENSIONS, Motor, partsOf } from './motor.ts'
import { AGE_COLUMN, commonStatus, defineKind, READY_COLUMNS, type Resource } from './kind.ts'

/** Reasons of a region's `Ready` condition. */
export const RegionReason = {
  /** The region lists motors, so databases can be created in it. Each database server has its own condition. */
  Serving: 'Serving',
  NoMotors: 'NoMotors',
  /** No server of a motor can run, such as for want of its image; the message names the motor and the cause. */
  MotorUnavailable: 'MotorUnavailable',
  /** An older region has the same `id` or `regionId`: nothing runs in this one. */
  IdTaken: 'IdTaken',
} as const

/** Types of the Service in front of a database server. Embedded mode ignores the setting. */
export const EXPOSURES = ['LoadBalancer', 'NodePort', 'ClusterIP'] as const

const RegionMotor = z.object({
  id: Motor,
  image: z.string().min(1).max(512).optional().describe('Container image that replaces the official one, e.g. a patched build.'),
  extensions: z
    .array(ExtensionName)
    .max(64)
    .optional()
    .describe('Extensions that instances may install. Default: the extensions that migrations commonly use.'),
  extensionDirectory: z
    .string()
    .regex(/^(\/[\w.+-]+)+$/, 'must be an absolute path')
    .max(255)
    .optional()
    .describe('Directory of extension files in the image. Default: the directory of the official image.'),
  tls: ServerTls.optional().describe(
    'none: passwords and data travel unencrypted, for a server whose TLS current clients reject. Default: required. Embedded mode ignores the setting.',
  ),
  warm: z
    .boolean()
    .default(false)
    .describe('Whether servers always keep free capacity, so that new instances do not wait for a server to start.'),
})

export const RegionSpec = z.object({
  id: z.uuid('must be a UUID').max(36).describe('Id that clients use to create a database.'),
  regionId: z.int().min(1).max(2_147_483_647).describe('Number that clients use to create a tunnel.'),
  name: z.string().min(1).max(63).describe('Human-readable name.'),
  motors: z.array(RegionMotor).max(32).default([]).describe('Motors that the region serves.'),
  databases: z
    .object({
      exposure: z.enum(EXPOSURES).default('ClusterIP').describe('Type of the Service in front of a database server.'),
      host: z
        .string()
        .min(1)
        .max(253)
        .optional()
        .describe('Host name that clients connect to. Default: the host name of the Service.'),
    })
    .optional()
    .describe('Exposure of the database servers.'),
  nodeSelector: boundedMap(z.string().max(317), z.string().max(63), 16)
    .optional()
    .describe('Labels of the nodes that database servers run on.'),
})

/** Number of objects, some seconds old. While one is not 0, the API server refuses to delete the Region (docs/install.md, "Deleting"). */
const count = (about: string) => z.int().min(0).optional().describe(about)

/** Location where databases and tunnels run. */
export const Region = defineKind({
  kind: 'Region',
  plural: 'regions',
  shortNames: ['mrgn'],
  namespaced: false,
  description: 'Location where databases and tunnels run.',
  spec: RegionSpec,
  status: z.object({
    ...commonStatus,
    instances: count('Number of shared databases in the region.'),
    databases: count('Number of dedicated databases in the region.'),
    tunnels: count('Number of tunnels in the region.'),
  }),
  immutable: ['spec.id', 'spec.regionId'],
  columns: [
    { name: 'Id', type: 'string', jsonPath: '.spec.id' },
    { name: 'RegionId', type: 'integer', jsonPath: '.spec.regionId' },
    { name: 'Display', type: 'string', jsonPath: '.spec.name' },
    { name: 'Instances', type: 'integer', jsonPath: '.status.instances' },
    { name: 'Databases', type: 'integer', jsonPath: '.status.databases' },
    { name: 'Tunnels', type: 'integer', jsonPath: '.status.tunnels' },
    ...READY_COLUMNS,
    AGE_COLUMN,
  ],
})
export type Region = Resource<typeof Region>

const haveOneId = (a: Region, b: Region): boolean => a.spec.id === b.spec.id || a.spec.regionId === b.spec.regionId

/** Returns the regions that are in force: those without an older one of the same `id` or `regionId`. Pure. */
export const regionsInForce = (regions: readonly Region[]): readonly Region[] => elders(regions, haveOneId)

/** Returns the older region that has the id of a region; undefined when the region is in force. Pure. */
export const regionBefore = (region: Region, regions: readonly Region[]): Region | undefined =>
  elderOf(region, regions, haveOneId)

/** Returns the region in force with an id. Pure. */
export const regionWithId = (regions: readonly Region[], id: string): Region | undefined =>
  regionsInForce(regions).find(({ spec }) => spec.id === id)

/** Returns the region in force with a number. Pure. */
export const regionWithNumber = (regions: readonly Region[], regionId: number): Region | undefined =>
  regionsInForce(regions).find(({ spec }) => spec.regionId === regionId)

/** Says whether a region, undefined for an unknown one, runs a motor. Pure. */
export function offerOf(region: Region | undefined, motor: Motor): 'served' | 'unknown' | 'motor-missing' {
  if (!region) return 'unknown'
  return region.spec.motors.some(({ id }) => id === motor) ? 'served' : 'motor-missing'
}

/** Returns the extensions that instances of a motor may have in a Region; an empty list when the Region does not run the motor. */
export function allowedExtensions(region: Region | undefined, motor: Motor): readonly string[] {
  const served = region?.spec.motors.find(({ id }) => id === motor)
  return served === undefined ? [] : (served.extensions ?? USUAL_EXTENSIONS[partsOf(motor).family] ?? [])
}
