import { DatabaseReason, DedicatedDatabase, hasFormerRules, isCreated, RULES_VERSION } from '../../crds/dedicated-database.ts'
import { MooringError } from '../../shared/errors.ts'
import { notReady } from '../../store/conditions.ts'
import { isStoreError, keyOf, keyToString, type Key, type Store } from '../../store/port.ts'
import { EngineCode } from '../engines/engine.ts'
import { type Report, type StatusFields, stepDone } from '../reporter.ts'
import type { Outcome } from '../runtime/controller.ts'
import { secretName } from '../shared-instance/credentials.ts'
import { type Applied, applyActions, type ApplyDeps, USAGE_UNRECORDED } from './apply.ts'
import { extensionFields } from './extensions.ts'
import { type Observation, observe, type ObserveDeps } from './observe.ts'
import { planDatabase, type Plan, type State } from './plan.ts'
import { sshTunnelFields } from './ssh-tunnel.ts'
import { presentPeriods, USAGE_FULL } from './usage-periods.ts'

export interface DatabaseReconcilerDeps extends ObserveDeps, ApplyDeps {
  readonly report: Report
}

/** Observed state and the decision about it. */
interface Decided {
  readonly seen: Observation
  readonly plan: Plan
}

const NO_ACCESS = 'the operator has no permission to write Secrets in this namespace'

/** Creates the reconciler: observe, plan, apply, report. The status is written last, after the actions that it reports. */
export function createDatabaseReconciler(deps: DatabaseReconcilerDeps): (key: Key) => Promise<Outcome> {
  async function say(
    database: DedicatedDatabase,
    { phase, decision }: State,
    fields: StatusFields<typeof DedicatedDatabase> = {},
  ): Promise<void> {
    await deps.report(DedicatedDatabase, database, decision, { ...fields, phase, rulesVersion: RULES_VERSION })
    stepDone('database.status', keyToString(keyOf(database)))
  }

  async function handle(database: DedicatedDatabase): Promise<Outcome> {
    let decided: Decided | undefined
    try {
      const seen = await observe(deps, database)
      const plan = planDatabase(seen.observed)
      decided = { seen, plan }
      const applied = await applyActions(deps, seen, plan)
      const { database: current } = applied
      const { endpoint } = seen.observed
      if (plan.state) {
        const present = plan.state.phase === 'running' ? presentFields({ ...applied, endpoint }, deps.now()) : {}
        const used = await usageFields(applied, decided)
        await say(current, plan.state, { ...fieldsOf(applied, plan.state), ...present, ...used, ...windowOf(seen) })
      }
      return outcomeOf(plan)
    } catch (error) {
      if (error instanceof MooringError && deps.mayAct?.() !== false) await reportFailure(database, error, decided)
      throw error
    }
  }

  /** Reports an error of the engine, or a missing permission; the reconcile is repeated after a back-off. */
  async function reportFailure({ metadata }: DedicatedDatabase, error: MooringError, decided?: Decided): Promise<void> {
    const database = await deps.store.get(DedicatedDatabase, metadata)
    if (database?.metadata.uid !== metadata.uid) return
    if (error.code === USAGE_UNRECORDED) {
      await say(database, { phase: 'deleting', decision: notReady(DatabaseReason.Deleting, error.message) })
    }
    if (database.metadata.deletionTimestamp !== undefined) return
    const failure = failureOf(database, error)
    if (!failure) return
    // The decision was made for the observed spec: a newer spec has its own reconcile.
    const isPresent = database.metadata.generation === metadata.generation && error.code !== USAGE_FULL
    const used = decided && isPresent ? await usageFields({ database, server: decided.seen.observed.server }, decided) : {}
    await say(database, failure, used)
  }

  /** Returns the periods of usage, as soon as the server exists; nothing without a change of them. */
  async function usageFields(
    { database, server }: Pick<Applied, 'database' | 'server'>,
    { seen: { observed }, plan: { size } }: Decided,
  ): Promise<StatusFields<typeof DedicatedDatabase>> {
    const about = { plan: observed.plan, archive: observed.backups.archive, size }
    const changed = server && (await presentPeriods(deps, { database, server, ...about }))
    return changed ? { usagePeriods: changed } : {}
  }

  return async function reconcileDatabase(key) {
    const database = deps.databases.get(key)
    if (!database) return { result: 'settled', reason: 'Gone' }
    return handle(hasFormerRules(database) ? await withoutRules(deps.store, database) : database)
  }
}

/** Removes the empty list of a former version before the status says what an empty list means, so that the database stays open. */
function withoutRules(store: Store, { metadata }: DedicatedDatabase): Promise<DedicatedDatabase> {
  const { uid, resourceVersion } = metadata
  return store.mergePatch(DedicatedDatabase, metadata, { spec: { firewallRules: null } }, { uid, resourceVersion })
}

const ENGINE_CODES: ReadonlySet<string> = new Set([EngineCode.unavailable, EngineCode.failed, EngineCode.loginRefused])

/** Returns the state after an error that is reported; undefined for others. */
function failureOf(database: DedicatedDatabase, error: MooringError): State | undefined {
  const { code, message } = error
  if (isStoreError(error, 'forbidden')) return { phase: 'failed', decision: notReady(DatabaseReason.NoAccess, NO_ACCESS) }
  if (code === USAGE_FULL) return { phase: 'updating', decision: notReady(DatabaseReason.Updating, message) }
  if (!ENGINE_CODES.has(code)) return undefined
  return isCreated(database)
    ? { phase: 'failed', decision: notReady(DatabaseReason.ServerUnavailable, message) }
    : { phase: 'provisioning', decision: notReady(DatabaseReason.CreatingDatabase, message) }
}

function outcomeOf({ state, requeueAfterMs }: Plan): Outcome {
  const reason = state?.decision.reason ?? DatabaseReason.Deleting
  return { result: state === undefined || state.phase === 'running' ? 'settled' : 'waiting', reason, requeueAfterMs }
}

/** Returns the fields of a running database that have conditions of their own. */
function presentFields(
  { database, server, extensions, endpoint }: Applied & Pick<Observation['observed'], 'endpoint'>,
  now: Date,
): StatusFields<typeof DedicatedDatabase> {
  const installed = extensionFields(database, extensions, now)
  const conditions = [...(installed.conditions ?? database.status?.conditions ?? [])]
  const current = { ...database, status: { ...database.status, conditions } }
  const tunnel = sshTunnelFields({ database: current, endpoint }, server, now)
  return { ...installed, ...tunnel, conditions: tunnel.conditions ?? conditions }
}

/** Returns the restore window of a database and the time of its last restore drill, which its archive has. */
function windowOf({ observed: { database, backups } }: Observation): StatusFields<typeof DedicatedDatabase> {
  const { restoreWindow = null, lastVerifiedRestore = null } =
    (database.spec.pointInTimeRecovery && backups.archive?.status) ?? {}
  return { restoreWindow, lastVerifiedRestore }
}

/** Returns the fields of the status without its condition: the server as soon as it exists, and all others when the database runs. */
function fieldsOf({ database, server, credentials }: Applied, { phase }: State): StatusFields<typeof DedicatedDatabase> {
  if (!server) return {}
  const serverRef = { name: server.metadata.name }
  if (phase !== 'running' || !credentials) return { serverRef }
  const { host, port, internalHost, tls, engineVersion } = server.status ?? {}
  return {
    serverRef,
    host,
    port,
    engineVersion,
    internalHost: internalHost ?? null,
    tls: tls ?? null,
    name: credentials.name,
    user: credentials.name,
    secretRef: { name: secretName(database) },
    passwordVersion: credentials.passwordVersion,
    passwordId: credentials.passwordId ?? null,
    plan: database.spec.plan,
    storageGiB: server.spec.size?.storageGiB,
  }
}
