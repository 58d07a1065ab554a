import { DatabaseReason, DedicatedDatabase, isCreated } from '../../../crds/dedicated-database.ts'
import { conditionOf } from '../../../store/conditions.ts'
import type { Patch } from '../../../store/port.ts'
import { ApiError } from '../../http/errors.ts'
import { type AnyRoute, fixedFields, route } from '../../http/route.ts'
import { retryLater } from '../../instances/instance-waits.ts'
import { changeSpec } from '../../resources/conditional-writes.ts'
import { PatchDatabaseBody, requireMonitoring, specPatch } from '../database-body.ts'
import { DATABASE_PATH, DatabaseData, type DatabaseDeps, DatabaseParams, requireNotDeleting, SEEN_MS } from '../database-deps.ts'
import { DatabaseView } from '../database-view.ts'
import { requireBackups } from '../database-backups.ts'
import { choosePlan, storageFloor } from '../plan-choice.ts'
import { checkSshKeys, requireEdges } from '../ssh-tunnel-view.ts'

const NEEDS = [{ verb: 'patch', resource: 'dedicateddatabases' }] as const
const ROTATION_NEEDS = [...NEEDS, { verb: 'get', resource: 'secrets' }] as const

const ANOTHER = 'create another database'
const FIXED = fixedFields(DatabaseView, PatchDatabaseBody, {
  name: ANOTHER,
  organization: ANOTHER,
  namespace: ANOTHER,
  engine: ANOTHER,
  region: ANOTHER,
  restoreFrom: 'create another database with it',
  connection: 'POST …/password sets a new password',
})

/** `PATCH /v1/databases/{id}`: writes the change and answers at once; `status` is `updating` until it is in force. */
export function patchDatabase(deps: DatabaseDeps): AnyRoute {
  const { store, plans, regions, catchUp, audit, find, answer, until } = deps

  /** Returns the merge patch of the spec. @throws ApiError `unknown_plan`, `plan_too_small` */
  function specOf(body: PatchDatabaseBody, now: DedicatedDatabase): Patch {
    const { plan } = body
    if (plan !== undefined && plan !== now.spec.plan) {
      const all = plans.list()
      choosePlan(all, { plan, engine: now.spec.motor, storageGiB: storageFloor(now, all) })
    }
    return specPatch(body)
  }

  return route({
    method: 'patch',
    path: DATABASE_PATH,
    on: ['dedicated'],
    id: 'patchDatabase',
    summary: 'Change the plan or the add-ons of a database.',
    description: [
      'A JSON merge patch (RFC 7396): `firewallRules` is replaced whole, null removes an add-on. Storage only grows: a plan with less storage is 422',
      '`plan_too_small`. The status is `updating` until the change is in force. A patch without a change writes nothing.',
    ].join(' '),
    conditional: true,
    params: DatabaseParams,
    body: PatchDatabaseBody,
    fixed: FIXED,
    checkBody: checkSshKeys,
    replies: { 200: DatabaseData },
    async handle({ principal, params, body, ifMatch, requestId, sourceIp }) {
      const found = await find(principal, params.id, NEEDS)
      requireNotDeleting(found)
      requireBackups(deps, found.spec.motor, body)
      requireMonitoring(deps.records, body)
      const region = regions.find(found.spec.region)
      if (body.sshTunnel && !found.spec.sshTunnel && region) requireEdges(regions.view(region))
      const { plan: name } = body
      if (name !== undefined) await catchUp(plans, () => plans.get({ name }))
      const change = { found, ifMatch, specOf: (now: DedicatedDatabase) => specOf(body, now) }
      const { before, after, isChanged } = await changeSpec(store, DedicatedDatabase, change)
      if (isChanged) await audit.record({ principal, requestId, sourceIp, action: 'update', before, after })
      const { generation } = after.metadata
      const seen = await until(after, ({ metadata }) => metadata.generation >= generation, SEEN_MS)
      return answer.plain(200, seen ?? after)
    },
  })
}

/** Checks that the database has been created, and so has a password. @throws ApiError `quota_exceeded`, `conflict` */
function requireCreated(database: DedicatedDatabase): void {
  if (isCreated(database)) return
  const condition = conditionOf(database, 'Ready')
  if (condition?.reason === DatabaseReason.QuotaExceeded) throw new ApiError('quota_exceeded', condition.message)
  throw new ApiError('conflict', 'this database has not been created yet and has no password; repeat the request when it runs')
}

/** `POST /v1/databases/{id}/password`: sets a new password, which is in force when the answer is sent. */
export function rotateDatabasePassword({ store, audit, find, answer, until, rotationMs }: DatabaseDeps): AnyRoute {
  return route({
    method: 'post',
    path: `${DATABASE_PATH}/password`,
    on: ['dedicated'],
    id: 'rotateDatabasePassword',
    summary: 'Replace the password; the answer has the new connection.',
    description: 'The old password no longer works when the answer is sent. 503 when that takes longer than 25 seconds.',
    conditional: true,
    params: DatabaseParams,
    replies: { 200: DatabaseData },
    async handle({ principal, params, ifMatch, arrivedAt, requestId, sourceIp }) {
      const found = await find(principal, params.id, ROTATION_NEEDS)
      requireNotDeleting(found)
      requireCreated(found)
      const specOf = ({ spec }: DedicatedDatabase) => ({ passwordVersion: spec.passwordVersion + 1 })
      const { before, after } = await changeSpec(store, DedicatedDatabase, { found, ifMatch, specOf })
      const recorded = audit.record({ principal, requestId, sourceIp, action: 'update', before, after })
      const { passwordVersion } = after.spec
      const isInForce = ({ status }: DedicatedDatabase) => (status?.passwordVersion ?? 0) >= passwordVersion
      const left = rotationMs - (performance.now() - arrivedAt)
      const done = await until(after, isInForce, left)
      await recorded
      if (!done) throw retryLater('the new password is not in force yet; read the database again in 5 s')
      return answer.withConnection(done, arrivedAt)
    },
  })
}
