import { annotations, FINALIZER } from '../../crds/names.ts'
import { InstanceReason, isClaimed, type SharedInstance } from '../../crds/shared-instance.ts'
import { conditionOf, notReady, ready, type Decision } from '../../store/conditions.ts'
import { type Full, fullMessage } from '../quota/quota.ts'
import { type ObservedSecret, passwordSteps, type PasswordStep, type ServerAddress } from './password-steps.ts'

/** Server of the instance, present or future. */
export type Placement =
  | ({ readonly found: 'reachable' } & ServerAddress)
  /** Its server is known but not reachable. `why`: reason, the same at each attempt to start the server; undefined while it is starting. */
  | { readonly found: 'down'; readonly why?: string | undefined }
  /** Its server was removed. */
  | { readonly found: 'removed' }
  /** No server has a free slot. */
  | { readonly found: 'none'; readonly down?: DownServers | undefined }

/** Servers of the region and motor that are down. `why`: reason when none of them can run; undefined while one is starting. */
export interface DownServers {
  readonly why?: string | undefined
}

/** State of a template. `in-use`: the engine found open sessions on it. `why`: sentence of the engine about what it does not copy. */
export type TemplateState = 'none' | 'ready' | 'missing' | 'in-use' | { readonly why: string }

/** Observed state that a decision may depend on, read once by observe.ts. */
export interface Observed {
  readonly instance: SharedInstance
  /** Milliseconds since the epoch. */
  readonly now: number
  /** Reason why its Namespace is not a tenant's, of an instance that is not claimed: then nothing else was read. */
  readonly refused?: string | undefined
  /** Set when the quota of its namespace does not admit the instance: then nothing else was read. */
  readonly full: Full | undefined
  readonly region: 'served' | 'unknown' | 'motor-missing'
  readonly placement: Placement
  readonly secret: ObservedSecret
  readonly template: TemplateState
  readonly oversize: boolean
  /** Whether the claimed database is on no server: the catalog of its server lacks it (queried only where that is in doubt), or it left a lost one. */
  readonly missing: boolean
  /** Whether its login must be seen to work before the instance is called ready again: it was not ready, or its server is another. */
  readonly inDoubt: boolean
  /** Whether the tenant has set another password than the Secret has. */
  readonly passwordChanged: boolean
  /** Whether the database has other extensions than the status (reported by the watchdog). */
  readonly extensionsChanged: boolean
}

/** Actions in order. A crash after any of them is harmless. */
export type Action =
  | PasswordStep
  | 'add-finalizer'
  | 'expire'
  | 'claim'
  | 'reset'
  | 'extensions'
  | 'enable'
  | 'disable'
  | 'verify'
  | 'drop'
  | 'forget-secret'
  | 'release'

export interface Plan {
  readonly actions: readonly Action[]
  /** Ready condition after the actions; undefined when there is no status to write. */
  readonly decision: Decision | undefined
  readonly requeueAfterMs?: number | undefined
  /** Part of the desired state that is in force after the actions, beside the password; undefined: as in the status. */
  readonly inForce?: InForce | undefined
  /** Whether the status forgets the server, which is gone: a reset then makes the database on another. */
  readonly leavesServer?: true
}

export interface InForce {
  readonly login: boolean
  readonly resetVersion: number
}

const doing = (actions: readonly Action[], decision?: Decision, requeueAfterMs?: number): Plan => ({
  actions,
  decision,
  requeueAfterMs,
})

/** Decides what a SharedInstance needs. Pure: each branch is a row in plan.test.ts or plan-changes.test.ts. */
export function planInstance(observed: Observed): Plan {
  const { instance } = observed
  if (instance.metadata.deletionTimestamp !== undefined) return planDeletion(observed)
  const end = endOf(observed)
  if (end !== undefined && end <= observed.now) return doing(['expire'])
  const plan = planLiving(observed)
  const later = [end, suspendedUntil(observed)].flatMap((time) => (time === undefined ? [] : [time - observed.now]))
  return { ...plan, requeueAfterMs: plan.requeueAfterMs ?? (later.length === 0 ? undefined : Math.min(...later)) }
}

function planLiving(observed: Observed): Plan {
  const { instance, full, refused } = observed
  // An instance that is not admitted needs no clean-up, so it gets no finalizer.
  if (refused !== undefined) return doing([], notReady(InstanceReason.NoAccess, refused))
  if (full) return doing([], notReady(InstanceReason.QuotaExceeded, fullMessage(full, 'instances')))
  const plan = refusal(observed) ?? (isClaimed(instance) ? planClaimed(observed) : planClaim(observed))
  const isGuarded = instance.metadata.finalizers?.includes(FINALIZER) === true
  return isGuarded ? plan : { ...plan, actions: ['add-finalizer', ...plan.actions] }
}

/** Time at which the instance is deleted: its expiry, or the deadline of a claim by a request that cannot be repeated. */
function endOf({ instance }: Observed): number | undefined {
  const deadline = isClaimed(instance) ? undefined : instance.metadata.annotations?.[annotations.claimDeadline]
  const ends = [instance.spec.expiresAt, deadline].flatMap((text) => (text === undefined ? [] : [Date.parse(text)]))
  return ends.length === 0 ? undefined : Math.min(...ends)
}

/** Time until which the instance is suspended; undefined when it is not. */
function suspendedUntil({ instance: { status }, now }: Observed): number | undefined {
  const until = Date.parse(status?.suspension?.until ?? '')
  return until > now ? until : undefined
}

function planDeletion({ instance, placement }: Observed): Plan {
  if (!instance.metadata.finalizers?.includes(FINALIZER)) return doing([])
  const forced = instance.metadata.annotations?.[annotations.forceDelete] === 'true'
  if (placement.found === 'reachable') return doing(['drop', 'forget-secret', 'release'])
  if (placement.found === 'down' && !forced) {
    return doing(
      [],
      notReady(InstanceReason.CleanupBlocked, 'the database server does not answer, so the database cannot be dropped yet'),
      1_000,
    )
  }
  return doing(['forget-secret', 'release'])
}

function refusal({ instance, region }: Observed): Plan | undefined {
  if (isClaimed(instance) || region === 'served') return undefined
  if (region === 'unknown') return doing([], notReady(InstanceReason.UnknownRegion, `unknown region: ${instance.spec.region}`))
  return doing([], notReady(InstanceReason.UnsupportedMotor, `this region does not run ${instance.spec.motor}`))
}

function planClaim(observed: Observed): Plan {
  const { instance, placement } = observed
  const blocker = templateBlocker(observed.template)
  if (blocker) return { actions: [], ...blocker }
  if (placement.found === 'none' || placement.found === 'removed') {
    return doing([], noSlotBecause(observed, placement.found === 'none' ? placement.down : undefined))
  }
  if (placement.found === 'down') return doing([], unreachableBecause(observed, placement.why))
  if (observed.secret === 'foreign') return doing([], secretTaken, SECRET_AGAIN_MS)
  const secret = observed.secret === 'damaged' ? 'renew-secret' : 'secret'
  const { enabled: login, resetVersion } = instance.spec
  const extensions = mayHaveExtensions(instance) ? (['extensions'] as const) : []
  const plan = doing([secret, 'claim', ...extensions, login ? 'verify' : 'disable'], loginDecision(observed, login))
  return { ...plan, inForce: { login, resetVersion } }
}

/** Interval of checking a Secret of another owner: its removal causes no event here. */
const SECRET_AGAIN_MS = 30_000
const secretTaken = notReady(InstanceReason.SecretTaken, 'a Secret of another owner has the name of its credentials')
const noSlot = notReady(InstanceReason.WaitingForServer, 'no database server has a free slot yet')
const databaseMissing = notReady(
  InstanceReason.DatabaseMissing,
  'the engine no longer has the database; a reset creates an empty one',
)
const serverGone = notReady(
  InstanceReason.DatabaseMissing,
  'its database server is gone; reset it to get an empty database on another, or delete it',
)
export const unreachable = notReady(InstanceReason.ServerUnavailable, 'the database server does not answer')

/** Decision for a server that is down. While it is starting, the reason reported before stays: each restart of a failing server would change it. */
function unreachableBecause({ instance }: Observed, why: string | undefined): Decision {
  if (why !== undefined) return notReady(InstanceReason.ServerUnavailable, `the database server cannot run: ${why}`)
  return formerly(instance) ?? unreachable
}

/** Decision for an instance without a server, which says why the servers that could take it do not run. */
function noSlotBecause({ instance }: Observed, down: DownServers | undefined): Decision {
  if (!down) return noSlot
  if (down.why === undefined) return formerly(instance) ?? noSlot
  return notReady(InstanceReason.ServerUnavailable, `no database server has a free slot: ${down.why}`)
}

/** Decision of an unavailable server that was reported before. */
function formerly(instance: SharedInstance): Decision | undefined {
  const before = conditionOf(instance, 'Ready')
  return before?.reason === InstanceReason.ServerUnavailable ? notReady(before.reason, before.message) : undefined
}

type TemplateBlocker = Pick<Plan, 'decision' | 'requeueAfterMs'>

/** Conditions for templates that cannot be copied now. They are checked again, as no event shows that they can be. */
const TEMPLATE_BLOCKERS: ReadonlyMap<TemplateState, TemplateBlocker> = new Map<TemplateState, TemplateBlocker>([
  // The template may appear later, when kubectl applies several objects at once.
  [
    'missing',
    { decision: notReady(InstanceReason.TemplateNotFound, 'the template does not exist or is not ready'), requeueAfterMs: 5_000 },
  ],
  ['in-use', { decision: notReady(InstanceReason.TemplateInUse, 'sessions are open on the template'), requeueAfterMs: 500 }],
])

function templateBlocker(template: TemplateState): TemplateBlocker | undefined {
  if (typeof template === 'string') return TEMPLATE_BLOCKERS.get(template)
  return { decision: notReady(InstanceReason.TemplateNotCopyable, template.why), requeueAfterMs: 60_000 }
}

function planClaimed(observed: Observed): Plan {
  const { placement, missing } = observed
  if (placement.found !== 'reachable') return planUnreachable(observed, placement)
  if (observed.secret === 'foreign') return doing([], secretTaken, SECRET_AGAIN_MS)
  const blocker = blockerOf(observed)
  if (!missing || resetsNow(observed)) return { ...planPresent(observed, placement), ...blocker }
  return blocker ? { actions: [], ...blocker } : doing([], databaseMissing)
}

function planUnreachable(observed: Observed, placement: Exclude<Placement, { readonly found: 'reachable' }>): Plan {
  if (placement.found === 'down') return doing([], unreachableBecause(observed, placement.why))
  if (placement.found === 'none') return doing([], noSlotBecause(observed, placement.down))
  return resetsNow(observed) ? { actions: [], decision: noSlot, leavesServer: true } : doing([], serverGone)
}

/** Plans for an instance whose database exists or is made anew. A reset that waits for its template delays nothing else. */
function planPresent(observed: Observed, at: ServerAddress): Plan {
  const { status, spec } = observed.instance
  const login = wantsLogin(observed)
  const steps = stepsFor(observed, at)
  // Logins are disabled before a reset, which may fail or take long.
  const actions = login ? [...steps, ...loginSteps(observed, login)] : [...loginSteps(observed, login), ...steps]
  // A login that is made anew is enabled.
  if (observed.missing && !login) actions.push('disable')
  if (login && (observed.inDoubt || actions.some((action) => !KEEPS_LOGIN.has(action)))) actions.push('verify')
  const resetVersion = blockerOf(observed) ? (status?.resetVersion ?? 0) : spec.resetVersion
  return { actions, decision: loginDecision(observed, login), inForce: { login, resetVersion } }
}

function stepsFor(observed: Observed, at: ServerAddress): readonly Action[] {
  const ofDatabase = [...resetSteps(observed), ...extensionSteps(observed)]
  const ofPassword = passwordSteps(passwordOf(observed), at)
  if (!observed.missing) return [...ofDatabase, ...ofPassword]
  // A database that is made anew gets the password of the Secret, which names the server first.
  return [...ofPassword.filter((step) => step !== 'password'), ...ofDatabase]
}

/** Actions that leave the login unchanged. */
const KEEPS_LOGIN: ReadonlySet<Action> = new Set(['move-secret', 'extensions'])

/** Whether a new database of the instance gets extensions, or may have those of its template. */
const mayHaveExtensions = ({ spec }: SharedInstance): boolean => spec.extensions.length > 0 || spec.templateRef !== undefined

/** Installs missing extensions. A rejected extension is tried again at every reconcile: the reason may have gone. */
function extensionSteps(observed: Observed): readonly Action[] {
  const { spec, status } = observed.instance
  const { extensions = [] } = status ?? {}
  const isInstalled = spec.extensions.every((name) => extensions.includes(name))
  const isRenewed = resetsNow(observed) && (mayHaveExtensions(observed.instance) || extensions.length > 0)
  return isInstalled && !isRenewed && !mustLook(observed) ? [] : ['extensions']
}

/** Whether the status may say something else about extensions than the database. */
function mustLook({ extensionsChanged, instance: { spec, status } }: Observed): boolean {
  return extensionsChanged || (status?.extensionsVersion ?? 0) < (spec.extensionsVersion ?? 0)
}

const wantsReset = ({ instance }: Observed): boolean => (instance.status?.resetVersion ?? 0) < instance.spec.resetVersion

/** Reason why a desired reset cannot be carried out now. */
const blockerOf = (observed: Observed) => (wantsReset(observed) ? templateBlocker(observed.template) : undefined)

const resetsNow = (observed: Observed): boolean => wantsReset(observed) && !blockerOf(observed)

/** Whether logins should be enabled. A database above its size limit gets none, unless a reset empties it. */
const wantsLogin = (observed: Observed): boolean =>
  observed.instance.spec.enabled && suspendedUntil(observed) === undefined && (!observed.oversize || resetsNow(observed))

/** Whether a suspension ends now. The watchdog has also expired the password. */
const endsSuspension = (observed: Observed): boolean =>
  observed.instance.status?.suspension !== undefined && observed.instance.status.isEnabled === false && wantsLogin(observed)

const resetSteps = (observed: Observed): readonly Action[] => (resetsNow(observed) ? ['reset'] : [])

function passwordOf(observed: Observed) {
  const { instance, secret, passwordChanged } = observed
  return {
    desired: instance.spec.passwordVersion,
    inForce: { version: instance.status?.passwordVersion, id: instance.status?.passwordId },
    secret,
    isChanged: passwordChanged || endsSuspension(observed),
  }
}

function loginSteps({ instance }: Observed, desired: boolean): readonly Action[] {
  if (instance.status?.isEnabled === desired) return []
  return [desired ? 'enable' : 'disable']
}

function loginDecision(observed: Observed, desired: boolean): Decision {
  if (desired) return ready(InstanceReason.Claimed, 'the database exists and its login works')
  const until = suspendedUntil(observed)
  if (observed.instance.spec.enabled && until !== undefined) return suspended(until)
  if (observed.instance.spec.enabled)
    return notReady(InstanceReason.SizeExceeded, 'the database grew past its limit; reset or delete it')
  return notReady(InstanceReason.Disabled, 'disabled: no logins')
}

const suspended = (until: number): Decision =>
  notReady(
    InstanceReason.Suspended,
    `a statement in the database could not be ended, so that its server had to be restarted: no logins until ${new Date(until).toISOString()}`,
  )
