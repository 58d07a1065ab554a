import { z } from 'zod'
import { Motor } from '../../../crds/motor.ts'
import type { DedicatedDatabase } from '../../../crds/dedicated-database.ts'
import { namespaceName, slugsOf } from '../../../crds/names.ts'
import { page, PageQuery, resourceKey } from '../../http/paging.ts'
import { type AnyRoute, type Principal, route } from '../../http/route.ts'
import { listOf, Slug } from '../../tenancy/tenancy-deps.ts'
import {
  createDatabaseDeps,
  DATABASE_PATH,
  DatabaseData,
  type DatabaseDeps,
  DatabaseParams,
  DATABASES_PATH,
  type DatabaseWiring,
} from '../database-deps.ts'
import { DATABASE_STATUSES, DatabaseView, isConnectable, stateOf } from '../database-view.ts'
import { deleteBackups, listBackups, requestBackup } from './backups.ts'
import { patchDatabase, rotateDatabasePassword } from './change-database.ts'
import { createDatabase } from './create-database.ts'
import { deleteDatabase } from './delete-database.ts'
import { createDatabaseExtension, listDatabaseExtensions } from './extensions.ts'
import { getMetrics } from './metrics.ts'
import { getUsage, listUsage } from './usage.ts'
import { sshLoginRoutes } from './ssh-logins.ts'

/** Returns the routes of dedicated databases (docs/api.md, "Dedicated databases"). */
export function databaseRoutes(wiring: DatabaseWiring): AnyRoute[] {
  const deps = createDatabaseDeps(wiring)
  const routes = [
    createDatabase,
    listDatabases,
    getDatabase,
    patchDatabase,
    rotateDatabasePassword,
    deleteDatabase,
    getUsage,
    listUsage,
    getMetrics,
    listBackups,
    requestBackup,
    deleteBackups,
    listDatabaseExtensions,
    createDatabaseExtension,
  ]
  const logins = wiring.tunnels ? sshLoginRoutes(deps, wiring.tunnels) : []
  return [...routes.map((make) => make(deps)), ...logins]
}

const ListQuery = z.object({
  ...PageQuery,
  organization: Slug.optional().describe('Only databases of this organization.'),
  namespace: Slug.optional().describe('Only databases in namespaces with this slug.'),
  name: z.string().max(253).optional().describe('Only databases with exactly this name.'),
  engine: Motor.optional().describe('Only databases of this engine.'),
  region: z
    .uuid('must be the id (a UUID) of a region in GET /v1/regions')
    .optional()
    .describe('Only databases in the region with this id.'),
  status: z.enum(DATABASE_STATUSES).optional().describe('Only databases in this state.'),
})
type Filter = Omit<z.output<typeof ListQuery>, keyof typeof PageQuery>

/** Whether a database matches every given filter. */
export function matches(database: DedicatedDatabase, { region, ...filter }: Filter): boolean {
  const { metadata, spec } = database
  const traits: Required<typeof filter> = {
    ...slugsOf(metadata.namespace),
    name: metadata.name,
    engine: spec.motor,
    status: stateOf(database).status,
  }
  const given = Object.entries(filter) as [keyof typeof filter, string | undefined][]
  const isMatch = given.every(([field, wanted]) => wanted === undefined || traits[field] === wanted)
  return isMatch && (region === undefined || spec.region.toLowerCase() === region.toLowerCase())
}

/** `GET /v1/databases`: the databases of all namespaces in which the caller has a role, newest first. */
function listDatabases({ scopes, access, databases, answer }: DatabaseDeps): AnyRoute {
  const LIST = { verb: 'list', resource: 'dedicateddatabases' } as const

  /** Returns the databases that the caller may list. */
  async function listable(principal: Principal): Promise<readonly DedicatedDatabase[]> {
    if (await scopes.may(principal, LIST)) return databases.list()
    const own = (await access.memberships(principal)).map((each) => namespaceName(each.organization, each.namespace))
    const lists = own.map(async (namespace) => {
      const found = databases.list({ namespace })
      return found.length > 0 && (await scopes.may(principal, { ...LIST, namespace })) ? found : []
    })
    return (await Promise.all(lists)).flat()
  }

  return route({
    method: 'get',
    path: DATABASES_PATH,
    on: ['dedicated'],
    id: 'listDatabases',
    summary: 'List the databases of all your namespaces, without their connections.',
    query: ListQuery,
    replies: { 200: listOf('databases', DatabaseView) },
    async handle({ principal, query: { limit, cursor, ...filter } }) {
      const found = (await listable(principal)).filter((database) => matches(database, filter))
      const { items, nextCursor } = page(found, { limit, cursor }, resourceKey)
      return { status: 200, data: { databases: items.map((database) => answer.view(database)), nextCursor } }
    },
  })
}

/** `GET /v1/databases/{id}`: returns the connection to callers that may read Secrets, and records such a read in the audit log. */
function getDatabase({ scopes, find, answer, audit }: DatabaseDeps): AnyRoute {
  return route({
    method: 'get',
    path: DATABASE_PATH,
    on: ['dedicated'],
    id: 'getDatabase',
    summary: 'Get one database, with its connection.',
    description: [
      '`connection` is null for viewers, and unless the status is `running` or `updating`. Otherwise the answer has the password, and the read is',
      'recorded in the audit log (`action: read`).',
    ].join(' '),
    params: DatabaseParams,
    replies: { 200: DatabaseData },
    async handle({ principal, params, arrivedAt, requestId, sourceIp }) {
      const database = await find(principal, params.id)
      const { namespace } = database.metadata
      const isShown = isConnectable(database) && (await scopes.may(principal, { verb: 'get', resource: 'secrets', namespace }))
      if (!isShown) return answer.plain(200, database)
      const reply = await answer.withConnection(database, arrivedAt)
      await audit.record({ principal, requestId, sourceIp, action: 'read', after: database })
      return reply
    },
  })
}
