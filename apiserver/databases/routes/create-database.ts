import { DedicatedDatabase } from '../../../crds/dedicated-database.ts'
import type { Draft } from '../../../crds/kind.ts'
import { annotations, FINALIZER } from '../../../crds/names.ts'
import { ApiError } from '../../http/errors.ts'
import { type AnyRoute, route, type RouteRequest, type Scope } from '../../http/route.ts'
import { untilKnown } from '../../resources/cache-waits.ts'
import { createNamed, findKeyed, requestHash, sameRequest } from '../../resources/creations.ts'
import { createdNow } from '../../resources/names-and-times.ts'
import { checkNewDatabase, CreateDatabaseBody, requireMonitoring } from '../database-body.ts'
import { DatabaseData, type DatabaseDeps, DATABASES_PATH } from '../database-deps.ts'
import { createRestoreCheck, requireBackups } from '../database-backups.ts'
import { choosePlan } from '../plan-choice.ts'
import { requireEdges, withoutNulls } from '../ssh-tunnel-view.ts'

type Request = RouteRequest<unknown, unknown, CreateDatabaseBody>

/** `POST /v1/databases`: creates the resource and answers at once; the operator creates the server and the database. */
export function createDatabase(deps: DatabaseDeps): AnyRoute {
  const { store, scopes, databases, plans, regions, catchUp, quota, audit, answer, now } = deps

  const restoreDraft = createRestoreCheck(deps)

  function scopeOf(request: Request): Promise<Scope> {
    const { organization, namespace } = request.body
    if (organization === undefined || namespace === undefined) return scopes.home(request)
    return scopes.ofPath(request.principal, { organization, namespace })
  }

  /**
   * Returns the resource for a body.
   * @throws ApiError `unknown_region`, `unsupported_motor`, `unknown_plan`, `unsupported_addon`, `unknown_database`, `outside_restore_window`
   */
  async function draftOf({ principal, body }: Request, namespace: string): Promise<Draft<typeof DedicatedDatabase>> {
    const { region, motor } = regions.choose({ region: body.region, motor: body.engine }, 'engine')
    await catchUp(plans, () => plans.get({ name: body.plan }))
    choosePlan(plans.list(), { plan: body.plan, engine: motor, storageGiB: 0 })
    requireBackups(deps, motor, body)
    requireMonitoring(deps.records, body)
    const { name, pointInTimeRecovery, restoreFrom } = body
    const restore = restoreFrom && (await restoreDraft(principal, restoreFrom, { engine: motor, namespace, name }))
    if (body.sshTunnel) requireEdges(regions.view(region))
    return {
      metadata: {
        namespace,
        name: body.name,
        finalizers: [FINALIZER],
        annotations: { [annotations.createdBy]: principal.user, ...createdNow(now()), ...restore?.annotations },
      },
      spec: {
        motor,
        region: region.spec.id,
        plan: body.plan,
        ...(body.firewallRules && { firewallRules: body.firewallRules }),
        privateNetwork: body.privateNetwork ?? false,
        ...(body.sshTunnel && { sshTunnel: withoutNulls(body.sshTunnel) }),
        monitoring: body.monitoring ?? false,
        ...(pointInTimeRecovery && { pointInTimeRecovery }),
        ...(restore && { restoreFrom: restore.restoreFrom }),
      },
    }
  }

  /** @throws ApiError `conflict` while a database of this name is being deleted */
  function requireFreeName(namespace: string, name: string): void {
    if (databases.get({ namespace, name })?.metadata.deletionTimestamp === undefined) return
    const message = `the database ${name} is being deleted; its name is free when it is gone`
    throw new ApiError('conflict', message, { details: [{ field: 'name', message }] })
  }

  return route({
    method: 'post',
    path: DATABASES_PATH,
    on: ['dedicated'],
    id: 'createDatabase',
    summary: 'Create a database with a server of its own; the answer does not wait for it.',
    description: [
      'Read the database until its `status` is `running`: the answer of `GET /v1/databases/{id}` then has the connection. Without `organization` and',
      '`namespace` the database is created in the default namespace.',
    ].join(' '),
    body: CreateDatabaseBody,
    checkBody: checkNewDatabase,
    idempotent: true,
    home: true,
    replies: { 201: DatabaseData },
    async handle(request) {
      const { principal, body, idempotencyKey: key, requestId, sourceIp } = request
      const scope = await scopeOf(request)
      const { namespace } = scope
      await scopes.require(principal, { verb: 'create', resource: 'dedicateddatabases', namespace })
      const owner = { namespace, user: principal.user, key }
      const hash = requestHash(body)
      // A repeated request is not checked again: the plan of the first one may be gone.
      const earlier = await findKeyed(store, DedicatedDatabase, owner)
      if (earlier) return answer.plain(201, sameRequest<typeof DedicatedDatabase>(earlier, hash))
      const draft = await draftOf(request, namespace)
      requireFreeName(namespace, body.name)
      using reservations = new DisposableStack()
      reservations.use(quota.reserve({ namespace, name: body.name }))
      const about = { owner, hash, what: 'database', field: 'name' }
      const { object, created } = await createNamed(store, DedicatedDatabase, draft, about)
      if (created) await audit.record({ principal, requestId, sourceIp, action: 'create', after: object })
      await untilKnown(databases, object, scopes.rejectWhenDeleted(scope))
      return answer.plain(201, object)
    },
  })
}
