import { type InstanceDeps, InstanceParams } from '../instance-deps.ts'
import { addToInstance, allowedFor } from '../instance-extensions.ts'
import { type AnyRoute, route } from '../../http/route.ts'
import { CreateExtensionBody, ExtensionsData, extensionViews } from '../../resources/extensions.ts'
import { requireNotDeleting, requireQuota } from '../instance-lookup.ts'

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
      const instance = await deps.find(principal, params.id)
      return { status: 200, data: { extensions: await extensionViews(deps, instance, allowedFor(deps, instance)) } }
    },
  })
}

const NEEDS = [{ verb: 'patch', resource: 'sharedinstances' }] as const

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
      const done = await addToInstance(deps, { instance, names: [body.name], field: 'name', request })
      return { status: 201, data: { extensions: await extensionViews(deps, done, allowedFor(deps, done)) } }
    },
  })
}
