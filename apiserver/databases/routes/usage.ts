import { z } from 'zod'
import type { DedicatedDatabase } from '../../../crds/dedicated-database.ts'
import type { DatabaseRecords } from '../../../journal/databases.ts'
import { ApiError } from '../../http/errors.ts'
import { type AnyRoute, type Principal, route } from '../../http/route.ts'
import { isUid } from '../../instances/instance-lookup.ts'
import { NAMESPACE_PATH, NamespaceParams } from '../../tenancy/tenancy-deps.ts'
import { DATABASE_PATH, type DatabaseDeps, DatabaseParams } from '../database-deps.ts'
import { NamespaceUsageView, namespaceUsageView, readUsage, spanOf, UsageQuery, UsageView, usageView } from '../usage.ts'

const GET = { verb: 'get', resource: 'dedicateddatabases' } as const

/** Returns the journal's records of databases. @throws ApiError `unavailable` in an installation without edges, which has no journal */
export function requireRecords(records: DatabaseRecords | undefined): DatabaseRecords {
  if (records) return records
  throw new ApiError('unavailable', 'this installation has no journal, and so no records of databases')
}

/** `GET /v1/databases/{id}/usage`: of a deleted database too, while its records are kept. */
export function getUsage(deps: DatabaseDeps): AnyRoute {
  const { access, find, now } = deps

  /**
   * Finds the database; returns undefined for a deleted one whose usage the caller may read.
   * @throws ApiError `not_found`, `unavailable`
   */
  async function findLiving(principal: Principal, id: string): Promise<DedicatedDatabase | undefined> {
    try {
      return await find(principal, id)
    } catch (error) {
      if (error instanceof ApiError && error.code === 'not_found' && (await mayReadDeleted(principal, id))) return undefined
      throw error
    }
  }

  /** Whether the caller may read databases of the namespace that a deleted database was in. */
  async function mayReadDeleted(principal: Principal, id: string): Promise<boolean> {
    const database = id.toLowerCase()
    if (!isUid(database)) return false
    const [one] = await requireRecords(deps.records).usage({ database, from: 0, to: now().getTime() })
    return one !== undefined && access.may(principal, { ...GET, namespace: one.namespace })
  }

  return route({
    method: 'get',
    path: `${DATABASE_PATH}/usage`,
    on: ['dedicated'],
    id: 'getDatabaseUsage',
    summary: 'Get the use of billable items by a database within a span.',
    description: [
      'Each billable item has one sum. A part of an hour counts by its share of the hour. The usage of a deleted database can be read for 400 days',
      'by callers that may read databases of its namespace.',
    ].join(' '),
    params: DatabaseParams,
    query: UsageQuery,
    replies: { 200: z.object({ usage: z.array(UsageView) }) },
    async handle({ principal, params, query }) {
      const span = spanOf(query, now())
      const living = await findLiving(principal, params.id)
      const by = { database: params.id.toLowerCase() }
      const sums = await readUsage(requireRecords(deps.records), by, { span, living: living ? [living] : [], now: now() })
      return { status: 200, data: { usage: sums.map(usageView) } }
    },
  })
}

/** `GET …/namespaces/{namespace}/usage`: of all databases of a namespace, deleted ones included. */
export function listUsage({ scopes, databases, now, ...deps }: DatabaseDeps): AnyRoute {
  return route({
    method: 'get',
    path: `${NAMESPACE_PATH}/usage`,
    on: ['dedicated'],
    id: 'getNamespaceUsage',
    summary: 'Get the use of billable items by the databases of a namespace within a span, deleted databases included.',
    params: NamespaceParams,
    query: UsageQuery,
    replies: { 200: z.object({ usage: z.array(NamespaceUsageView) }) },
    async handle({ principal, params, query }) {
      const span = spanOf(query, now())
      const { namespace } = await scopes.ofPath(principal, params)
      await scopes.require(principal, { ...GET, verb: 'list', namespace })
      const living = databases.list({ namespace })
      const sums = await readUsage(requireRecords(deps.records), { namespace }, { span, living, now: now() })
      return { status: 200, data: { usage: sums.map(namespaceUsageView) } }
    },
  })
}
