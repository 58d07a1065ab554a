import { z } from 'zod'
import { boundedMap } from './formats/bounded-map.ts'
import { ExtensionName, USUAL_EXTENSIONS } from './formats/extensions.ts'
import { AGE_COLUMN, commonStatus, defineKind, READY_COLUMNS, type Resource } from './kind.ts'
import { Motor, partsOf } from './motor.ts'

/** Reasons of a region's `Ready` condition. */
export const RegionReason = {
  /** It lists motors, so databases can be had here; each server has a condition of its own. */
  Serving: 'Serving',
  NoMotors: 'NoMotors',
} as const

/** How a database server of a region is reached from outside; embedded servers ignore it. */
export const EXPOSURES = ['LoadBalancer', 'NodePort', 'ClusterIP'] as const

const RegionMotor = z.object({
  id: Motor,
  image: z.string().min(1).max(512).optional().describe('Container image in place of the official one, e.g. a patched build.'),
  extensions: z
    .array(ExtensionName)
    .max(64)
    .optional()
    .describe('Extensions that instances may ask for. Default: those that migrations commonly use.'),
  extensionDirectory: z
    .string()
    .regex(/^(\/[\w.+-]+)+$/, 'must be an absolute path')
    .max(255)
    .optional()
    .describe('Directory of extension files in the image, when it is not that of the official image.'),
  warm: z.boolean().default(false).describe('Keep a server with free places running before the first request.'),
})

export const RegionSpec = z.object({
  id: z.uuid('must be a UUID').max(36).describe('The id callers use when they create a database.'),
  regionId: z.int().min(1).max(2_147_483_647).describe('The id callers use when they create a tunnel.'),
  name: z.string().min(1).max(63).describe('Human-readable name.'),
  motors: z.array(RegionMotor).max(32).default([]).describe('Engines served here.'),
  databases: z
    .object({
      exposure: z.enum(EXPOSURES).default('ClusterIP').describe('Type of the Service before a database server.'),
      host: z.string().min(1).max(253).optional().describe('Host name callers connect to, when it is not the Service’s own.'),
    })
    .optional()
    .describe('How database servers are exposed.'),
  nodeSelector: boundedMap(z.string().max(317), z.string().max(63), 16)
    .optional()
    .describe('Nodes that database servers run on.'),
})

/** A place where databases and tunnels run. */
export const Region = defineKind({
  kind: 'Region',
  plural: 'regions',
  shortNames: ['mrgn'],
  namespaced: false,
  description: 'A place where databases and tunnels run.',
  spec: RegionSpec,
  status: z.object({ ...commonStatus }),
  immutable: ['spec.id', 'spec.regionId'],
  columns: [
    { name: 'Id', type: 'string', jsonPath: '.spec.id' },
    { name: 'RegionId', type: 'integer', jsonPath: '.spec.regionId' },
    { name: 'Display', type: 'string', jsonPath: '.spec.name' },
    ...READY_COLUMNS,
    AGE_COLUMN,
  ],
})
export type Region = Resource<typeof Region>

/** Extensions that instances of a motor may have in a Region; none where the Region does not run it. */
export function allowedExtensions(region: Region | undefined, motor: Motor): readonly string[] {
  const served = region?.spec.motors.find(({ id }) => id === motor)
  return served === undefined ? [] : (served.extensions ?? USUAL_EXTENSIONS[partsOf(motor).family] ?? [])
}
