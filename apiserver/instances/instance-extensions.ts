import { z } from 'zod'
import { DatabaseServer } from '../../crds/database-server.ts'
import { SHARED_NAMESPACE } from '../../crds/names.ts'
import { allowedExtensions } from '../../crds/region.ts'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import type { Store } from '../../store/port.ts'
import { ApiError } from '../http/errors.ts'
import type { Regions } from '../catalog/regions.ts'

export const ExtensionView = z
  .object({
    name: z.string(),
    version: z.string().nullable().describe('Version on the server. Null until the database exists.'),
    installed: z.boolean(),
  })
  .meta({ id: 'Extension', examples: [{ name: 'citext', version: '1.6', installed: true }] })
export type ExtensionView = z.output<typeof ExtensionView>

export const ExtensionsData = z.object({ extensions: z.array(ExtensionView) })

export interface ExtensionsDeps {
  readonly store: Pick<Store, 'get'>
  readonly regions: Pick<Regions, 'all' | 'find'>
}

export const allowedFor = ({ regions }: Pick<ExtensionsDeps, 'regions'>, { spec }: SharedInstance): readonly string[] =>
  allowedExtensions(regions.find(spec.region), spec.motor)

/** Returns the extensions that the instance's region allows and its server has, sorted by name. @throws StoreError */
export async function extensionViews(deps: ExtensionsDeps, instance: SharedInstance): Promise<ExtensionView[]> {
  const { serverRef, extensions = [] } = instance.status ?? {}
  const server = serverRef && (await deps.store.get(DatabaseServer, { namespace: SHARED_NAMESPACE, name: serverRef.name }))
  const versions = server?.status?.extensions && new Map(server.status.extensions.map(({ name, version }) => [name, version]))
  return allowedFor(deps, instance)
    .filter((name) => versions === undefined || versions.has(name))
    .map((name) => ({ name, version: versions?.get(name) ?? null, installed: extensions.includes(name) }))
    .toSorted((a, b) => a.name.localeCompare(b.name))
}

/** Checks that the region allows the extensions. @throws ApiError `unsupported_extension` with the allowed ones */
export function requireAllowed(allowed: readonly string[], names: readonly string[], field: string): void {
  const unsupported = names.find((name) => !allowed.includes(name))
  if (unsupported === undefined) return
  const rule = allowed.length === 0 ? 'this motor has no extensions' : `must be one of ${allowed.join(', ')}`
  throw new ApiError('unsupported_extension', `unsupported extension: ${unsupported}: ${rule}`, {
    details: [{ field, message: rule }],
  })
}
