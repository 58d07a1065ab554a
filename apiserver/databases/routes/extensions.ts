import { DedicatedDatabase, isCreated } from '../../../crds/dedicated-database.ts'
import { allowedExtensions } from '../../../crds/region.ts'
import { ApiError } from '../../http/errors.ts'
import { type AnyRoute, route } from '../../http/route.ts'
import { changeSpec } from '../../resources/conditional-writes.ts'
import { addExtensions, CreateExtensionBody, ExtensionsData, extensionViews } from '../../resources/extensions.ts'
import { DATABASE_PATH, type DatabaseDeps, DatabaseParams, requireNotDeleting } from '../database-deps.ts'

const EXTENSIONS_PATH = `${DATABASE_PATH}/extensions`
const NEEDS = [{ verb: 'patch', resource: 'dedicateddatabases' }] as const

/** Returns the extensions that the region of a database allows for its engine. */
const allowedFor = ({ regions }: Pick<DatabaseDeps, 'regions'>, { spec }: DedicatedDatabase): readonly string[] =>
  allowedExtensions(regions.find(spec.region), spec.motor)

/** `GET /v1/databases/{id}/extensions`: the extensions that the region of the database allows. */
export function listDatabaseExtensions(deps: DatabaseDeps): AnyRoute {
  return route({
    method: 'get',
    path: EXTENSIONS_PATH,
    on: ['dedicated'],
    id: 'listDatabaseExtensions',
    summary: 'List the extensions that the region allows for the engine, and which of them are installed.',
    params: DatabaseParams,
    replies: { 200: ExtensionsData },
    async handle({ principal, params }) {
      const database = await deps.find(principal, params.id)
      return { status: 200, data: { extensions: await extensionViews(deps, database, allowedFor(deps, database)) } }
    },
  })
}

/** `POST /v1/databases/{id}/extensions`: installs an extension with the rights of the database administrator. */
export function createDatabaseExtension(deps: DatabaseDeps): AnyRoute {
  const { store, audit, until, rotationMs } = deps
  return route({
    method: 'post',
    path: EXTENSIONS_PATH,
    on: ['dedicated'],
    id: 'createDatabaseExtension',
    summary: 'Install an extension in the database; the answer lists all extensions.',
    description: [
      'The user of a database cannot install extensions; `CREATE EXTENSION IF NOT EXISTS` of an installed one succeeds.',
      'The extension is in schema `public`. It is installed again within 10 s after a `DROP SCHEMA` or `DROP EXTENSION`. 409 before the database has been created, and when the schema has an object with a name that the extension needs.',
    ].join(' '),
    params: DatabaseParams,
    body: CreateExtensionBody,
    replies: { 201: ExtensionsData },
    async handle({ principal, params, body, requestId, sourceIp, arrivedAt }) {
      const database = await deps.find(principal, params.id, NEEDS)
      requireNotDeleting(database)
      if (!isCreated(database)) throw notCreated()
      const allowed = allowedFor(deps, database)
      const done = await addExtensions<DedicatedDatabase>(
        {
          change: (found, specOf) => changeSpec(store, DedicatedDatabase, { found, specOf }),
          record: (changed) => audit.record({ principal, requestId, sourceIp, action: 'update', ...changed }),
          until: (after, holds) => until(after, holds, rotationMs - (performance.now() - arrivedAt)),
        },
        { database, names: [body.name], allowed, field: 'name' },
      )
      return { status: 201, data: { extensions: await extensionViews(deps, done, allowed) } }
    },
  })
}

const notCreated = (): ApiError =>
  new ApiError('conflict', 'this database has not been created yet; repeat the request when it runs')
