import { z } from 'zod'
import { DatabaseServer } from '../../../crds/database-server.ts'
import { SHARED_NAMESPACE } from '../../../crds/names.ts'
import type { SharedInstance } from '../../../crds/shared-instance.ts'
import { type InstanceDeps, InstanceParams } from '../instance-deps.ts'
import { addExtensions, allowedFor } from '../instance-extensions.ts'
import { type AnyRoute, route } from '../../http/route.ts'
import { ExtensionName } from '../../../crds/motor.ts'
import { requireNotDeleting, requireQuota } from '../instance-lookup.ts'

const ExtensionView = z
  .object({
    name: z.string(),
    version: z.string().nullable().describe('Version on the server. Null until the database exists.'),
    installed: z.boolean().describe('Whether the database has it. A change by the user of the database shows within 10 s.'),
  })
  .meta({ id: 'Extension', examples: [{ name: 'citext', version: '1.6', installed: true }] })
type ExtensionView = z.output<typeof ExtensionView>

const ExtensionsData = z.object({ extensions: z.array(ExtensionView) })

/** `GET /v1/instances/{id}/extensions`: the extensions that the instance's region allows. */
export function listExtensions(deps: InstanceDeps): AnyRoute {
  return route({
    method: 'get',
    path: '/v1/instances/{id}/extensions',
    on: ['shared'],
    id: 'listExtensions',
    summary: 'List the extensions that the region allows for the engine, and which of them are installed.',
    params: InstanceParams,
    replies: { 200: ExtensionsData },
    async handle({ principal, params }) {
      return { status: 200, data: { extensions: await extensionViews(deps, await deps.find(principal, params.id)) } }
    },
  })
}

const NEEDS = [{ verb: 'patch', resource: 'sharedinstances' }] as const

const CreateExtensionBody = z
  .object({ name: ExtensionName.describe('An extension that `GET …/extensions` lists.') })
  .meta({ id: 'CreateExtension', examples: [{ name: 'citext' }] })

/** `POST /v1/instances/{id}/extensions`: installs an extension with the rights of the database administrator. */
export function createExtension(deps: InstanceDeps): AnyRoute {
  return route({
    method: 'post',
    path: '/v1/instances/{id}/extensions',
    on: ['shared'],
    id: 'createExtension',
    summary: 'Install an extension in the database; the answer lists all extensions.',
    description: [
      'The user of a database cannot install extensions; `CREATE EXTENSION IF NOT EXISTS` of an installed one succeeds.',
      'The extension is in schema `public`. It is installed again after a reset, and within 10 s after a `DROP SCHEMA` or `DROP EXTENSION`. 409 when the schema has an object with a name that the extension needs.',
    ].join(' '),
    params: InstanceParams,
    body: CreateExtensionBody,
    replies: { 201: ExtensionsData },
    async handle(request) {
      const { principal, params, body } = request
      const instance = await deps.find(principal, params.id, NEEDS)
      requireNotDeleting(instance)
      requireQuota(instance)
      const done = await addExtensions(deps, { instance, names: [body.name], field: 'name', request })
      return { status: 201, data: { extensions: await extensionViews(deps, done) } }
    },
  })
}

/** Returns the extensions that the instance's region allows and its server has, sorted by name. @throws StoreError */
async function extensionViews(deps: Pick<InstanceDeps, 'store' | 'regions'>, instance: SharedInstance): Promise<ExtensionView[]> {
  const { serverRef, extensions = [] } = instance.status ?? {}
  const server = serverRef && (await deps.store.get(DatabaseServer, { namespace: SHARED_NAMESPACE, name: serverRef.name }))
  const versions = server?.status?.extensions && new Map(server.status.extensions.map(({ name, version }) => [name, version]))
  return allowedFor(deps, instance)
    .filter((name) => versions === undefined || versions.has(name))
    .map((name) => ({ name, version: versions?.get(name) ?? null, installed: extensions.includes(name) }))
    .toSorted((a, b) => a.name.localeCompare(b.name))
}
