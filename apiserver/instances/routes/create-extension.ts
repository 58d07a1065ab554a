import { z } from 'zod'
import { ExtensionName } from '../../../crds/formats/extensions.ts'
import { addExtensions } from '../add-extensions.ts'
import { type InstanceDeps, InstanceParams } from '../instance-deps.ts'
import { ExtensionsData, extensionViews } from '../instance-extensions.ts'
import { requireQuota, requireNotDeleting } from '../instance-lookup.ts'
import { type AnyRoute, route } from '../../http/route.ts'

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
      'The extension is in schema `public` and is installed again after a reset. 409 when the schema has an object with a name that the extension needs.',
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
