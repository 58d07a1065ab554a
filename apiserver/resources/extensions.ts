import { z } from 'zod'
import { DatabaseServer } from '../../crds/database-server.ts'
import type { Condition, ObjectMeta } from '../../crds/kind.ts'
import { ExtensionName } from '../../crds/motor.ts'
import { SHARED_NAMESPACE } from '../../crds/names.ts'
import { ExtensionReason, EXTENSIONS_INSTALLED } from '../../crds/shared-instance.ts'
import { conditionOf } from '../../store/conditions.ts'
import type { Patch, Store } from '../../store/port.ts'
import { ApiError } from '../http/errors.ts'
import { retryLater } from '../instances/instance-waits.ts'

/** Database, shared or dedicated, that can have extensions. */
export interface Extensible {
  readonly metadata: ObjectMeta
  readonly spec: { readonly extensions: readonly string[]; readonly extensionsVersion?: number | undefined }
  readonly status?:
    | {
        readonly extensions?: readonly string[] | undefined
        readonly extensionsVersion?: number | undefined
        readonly conditions?: readonly Condition[] | undefined
        readonly serverRef?: { readonly name: string } | undefined
      }
    | undefined
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

/** How a request changes a database and follows the operator's work on it. */
export interface ExtensionChange<T extends Extensible> {
  readonly change: (found: T, specOf: (now: T) => Patch) => Promise<{ readonly before: T; readonly after: T }>
  /** Records the change in the audit log. */
  readonly record: (changed: { readonly before: T; readonly after: T }) => Promise<void>
  /** Resolves with the database once the condition holds; with undefined when the time budget of the request is used up. */
  readonly until: (after: T, holds: (now: T) => boolean) => Promise<T | undefined>
}

export interface AddedExtensions<T extends Extensible> {
  readonly database: T
  readonly names: readonly string[]
  /** Extensions that the region allows. */
  readonly allowed: readonly string[]
  /** Body field with the names, for errors. */
  readonly field: string
}

/**
 * Adds extensions to a database and returns the database once they are installed. The operator looks at the database for each call: the tenant
 * may have dropped an extension since the status was written.
 * @throws ApiError `unsupported_extension`; `conflict`; `not_found`; `unavailable` when the time budget of the request is used up; StoreError
 */
export async function addExtensions<T extends Extensible>(
  { change, record, until }: ExtensionChange<T>,
  { database, names, allowed, field }: AddedExtensions<T>,
): Promise<T> {
  requireAllowed(allowed, names, field)
  const changed = await change(database, ({ spec }) => ({
    extensions: [...new Set([...spec.extensions, ...names])],
    extensionsVersion: (spec.extensionsVersion ?? 0) + 1,
  }))
  const recorded = record(changed)
  const version = changed.after.spec.extensionsVersion ?? 0
  try {
    const done = await until(changed.after, (now) => areInstalled(now, { names, field, version }))
    if (!done) throw retryLater('the extensions are not installed yet; try again')
    return done
  } catch (error) {
    if (error instanceof ApiError && error.code !== 'unavailable') await change(changed.after, without(changed))
    throw error
  } finally {
    await recorded
  }
}

interface Awaited {
  readonly names: readonly string[]
  readonly field: string
  /** `spec.extensionsVersion` of the request. */
  readonly version: number
}

/**
 * Whether the extensions are installed; false until the operator has looked at the database.
 * @throws ApiError `conflict` or `unsupported_extension` when the operator rejected one
 */
function areInstalled({ status }: Extensible, { names, field, version }: Awaited): boolean {
  if ((status?.extensionsVersion ?? 0) < version) return false
  if (names.every((name) => status?.extensions?.includes(name))) return true
  const condition = conditionOf({ status }, EXTENSIONS_INSTALLED)
  if (condition === undefined) return false
  const code = condition.reason === ExtensionReason.Conflict ? 'conflict' : 'unsupported_extension'
  throw new ApiError(code, condition.message, { details: [{ field, message: condition.message }] })
}

/** Returns the change that removes the extensions of a rejected request from the spec, so that the operator stops trying. */
function without({ before, after }: { readonly before: Extensible; readonly after: Extensible }): (now: Extensible) => Patch {
  const kept = new Set(before.spec.extensions)
  const added = new Set(after.spec.extensions.filter((name) => !kept.has(name)))
  return ({ spec }) => ({ extensions: spec.extensions.filter((name) => !added.has(name)) })
}

const ExtensionView = z
  .object({
    name: z.string(),
    version: z.string().nullable().describe('Version on the server. Null until the database exists.'),
    installed: z.boolean().describe('Whether the database has it. A change by the user of the database shows within 10 s.'),
  })
  .meta({ id: 'Extension', examples: [{ name: 'citext', version: '1.6', installed: true }] })
type ExtensionView = z.output<typeof ExtensionView>

/** Data of the responses about extensions. */
export const ExtensionsData = z.object({ extensions: z.array(ExtensionView) })

/** Body of `POST …/extensions`. */
export const CreateExtensionBody = z
  .object({ name: ExtensionName.describe('An extension that `GET …/extensions` lists.') })
  .meta({ id: 'CreateExtension', examples: [{ name: 'citext' }] })

/** Returns the extensions that the region of a database allows and its server has, sorted by name. @throws StoreError */
export async function extensionViews(
  { store }: { readonly store: Pick<Store, 'get'> },
  { status }: Extensible,
  allowed: readonly string[],
): Promise<ExtensionView[]> {
  const { serverRef, extensions = [] } = status ?? {}
  const server = serverRef && (await store.get(DatabaseServer, { namespace: SHARED_NAMESPACE, name: serverRef.name }))
  const versions = server?.status?.extensions && new Map(server.status.extensions.map(({ name, version }) => [name, version]))
  return allowed
    .filter((name) => versions === undefined || versions.has(name))
    .map((name) => ({ name, version: versions?.get(name) ?? null, installed: extensions.includes(name) }))
    .toSorted((a, b) => a.name.localeCompare(b.name))
}
