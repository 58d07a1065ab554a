import { annotations, FINALIZER } from '../../crds/names.ts'
import { InstanceReason, isClaimed, type SharedInstance } from '../../crds/shared-instance.ts'
import { notReady, ready, type Verdict } from '../../store/conditions.ts'
import { type Full, fullMessage } from '../quota/quota.ts'
import type { Credentials } from './kept-secret.ts'

/** Where the instance can live, or lives. */
export type Placement =
  | { readonly found: 'reachable'; readonly host: string; readonly port: number }
  /** Its server is known, but does not answer now. */
  | { readonly found: 'down' }
  /** The server it lived on was removed. */
  | { readonly found: 'removed' }
  /** No server with a free place. */
  | { readonly found: 'none' }

/** All that a decision may depend on, read once by observe.ts. */
export interface Observed {
  readonly instance: SharedInstance
  /** Milliseconds since the epoch. */
  readonly now: number
  /** Set when its namespace is full, and it is none of those that have their place: then nothing else was looked at. */
  readonly full: Full | undefined
  readonly region: 'served' | 'unknown' | 'motor-missing'
  readonly placement: Placement
  /** What its Secret says (kept-secret.ts); undefined when there is none. */
  readonly secret: Pick<Credentials, 'passwordVersion' | 'host' | 'port' | 'tidy'> | 'damaged' | 'foreign' | undefined
  /** `in-use`: sessions are open on it, as the engine found. */
  readonly template: 'none' | 'ready' | 'missing' | 'in-use'
  readonly oversize: boolean
  /** The engine's catalog lacks the database (looked up only on suspicion). */
  readonly missing: boolean
  /** The tenant has given its login another password than the Secret has. */
  readonly passwordChanged: boolean
  /** An extension that was installed is missing (found by the watchdog). */
  readonly extensionDropped: boolean
}

/** What to do, in order. Each is a step after which a crash is harmless. */
export type Action =
  | 'add-finalizer'
  | 'expire'
  /** The status names no password in force until the next one is: a crash between Secret and engine is made up for. */
  | 'doubt-password'
  | 'secret'
  | 'claim'
  | 'renew-secret'
  | 'move-secret'
  | 'password'
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
  /** What status will say once the actions are done; undefined when there is no status to write any more. */
  readonly verdict: Verdict | undefined
  readonly requeueAfterMs?: number | undefined
  /** What of the wish will be in force once the actions are done, beside the password; undefined: as the status has it. */
  readonly inForce?: InForce | undefined
}

export interface InForce {
  readonly login: boolean
  readonly resetVersion: number
}

const doing = (actions: readonly Action[], verdict?: Verdict, requeueAfterMs?: number): Plan => ({
  actions,
  verdict,
  requeueAfterMs,
})

/** Decides what a SharedInstance needs. Pure: each branch is a row in plan.test.ts. */
export function planInstance(observed: Observed): Plan {
  const { instance } = observed
  if (instance.metadata.deletionTimestamp !== undefined) return planDeletion(observed)
  const end = endOf(observed)
  if (end !== undefined && end <= observed.now) return doing(['expire'])
  const plan = planLiving(observed)
  return { ...plan, requeueAfterMs: plan.requeueAfterMs ?? (end === undefined ? undefined : end - observed.now) }
}

function planLiving(observed: Observed): Plan {
  const { instance, full } = observed
  // It has nothing that would have to be cleaned up, so it gets no finalizer.
  if (full) return doing([], notReady(InstanceReason.QuotaExceeded, fullMessage(full, 'instances')))
  const plan = refusal(observed) ?? (isClaimed(instance) ? planClaimed(observed) : planClaim(observed))
  const isGuarded = instance.metadata.finalizers?.includes(FINALIZER) === true
  return isGuarded ? plan : { ...plan, actions: ['add-finalizer', ...plan.actions] }
}

/** When it is to go: its expiry, or the moment a request that nobody can repeat gives up. */
function endOf({ instance }: Observed): number | undefined {
  const deadline = isClaimed(instance) ? undefined : instance.metadata.annotations?.[annotations.claimDeadline]
  const ends = [instance.spec.expiresAt, deadline].flatMap((text) => (text === undefined ? [] : [Date.parse(text)]))
  return ends.length === 0 ? undefined : Math.min(...ends)
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
  const hindrance = HINDRANCES.get(observed.template)
  if (hindrance) return { actions: [], ...hindrance }
  if (placement.found === 'none' || placement.found === 'removed') {
    return doing([], notReady(InstanceReason.WaitingForServer, 'no database server has a free place yet'))
  }
  if (placement.found === 'down') return doing([], unreachable)
  if (observed.secret === 'foreign') return doing([], secretTaken, SECRET_AGAIN_MS)
  const secret = observed.secret === 'damaged' ? 'renew-secret' : 'secret'
  const { enabled: login, resetVersion } = instance.spec
  const extensions = instance.spec.extensions.length > 0 ? (['extensions'] as const) : []
  const plan = doing([secret, 'claim', ...extensions, login ? 'verify' : 'disable'], standing(observed, login))
  return { ...plan, inForce: { login, resetVersion } }
}

/** Whoever has the Secret may give it up, which nothing tells us. */
const SECRET_AGAIN_MS = 30_000
const secretTaken = notReady(InstanceReason.SecretTaken, 'a Secret that is not its own has the name of its credentials')
const databaseMissing = notReady(
  InstanceReason.DatabaseMissing,
  'the engine no longer has the database; a reset makes an empty one',
)
const serverGone = notReady(InstanceReason.DatabaseMissing, 'the database server it lived on is gone')
export const unreachable = notReady(InstanceReason.ServerUnavailable, 'the database server does not answer')

/** What comes of a template that cannot be copied now. Nothing else would tell that it can be. */
const HINDRANCES: ReadonlyMap<Observed['template'], Pick<Plan, 'verdict' | 'requeueAfterMs'>> = new Map([
  // It may appear later, when kubectl applies several at once.
  [
    'missing',
    { verdict: notReady(InstanceReason.TemplateNotFound, 'the template is not there, or not ready'), requeueAfterMs: 5_000 },
  ],
  ['in-use', { verdict: notReady(InstanceReason.TemplateInUse, 'sessions are open on the template'), requeueAfterMs: 500 }],
])

function planClaimed(observed: Observed): Plan {
  const { placement, missing } = observed
  if (placement.found !== 'reachable') return doing([], placement.found === 'down' ? unreachable : serverGone)
  if (observed.secret === 'foreign') return doing([], secretTaken, SECRET_AGAIN_MS)
  const hindrance = hindranceOf(observed)
  if (!missing || resetsNow(observed)) return { ...planPresent(observed, placement), ...hindrance }
  return hindrance ? { actions: [], ...hindrance } : doing([], databaseMissing)
}

/** Of one whose database is there, or is made anew: a reset that waits for its template keeps nothing else waiting. */
function planPresent(observed: Observed, at: Address): Plan {
  const { status, spec } = observed.instance
  const login = loginWanted(observed)
  const steps = [...resetSteps(observed), ...extensionSteps(observed), ...passwordSteps(observed, at)]
  // Whoever is to be out is so before a reset, which may fail or take long.
  const actions = login ? [...steps, ...loginSteps(observed, login)] : [...loginSteps(observed, login), ...steps]
  if (login && actions.some((action) => !KEEPS_LOGIN.has(action))) actions.push('verify')
  const resetVersion = hindranceOf(observed) ? (status?.resetVersion ?? 0) : spec.resetVersion
  return { actions, verdict: standing(observed, login), inForce: { login, resetVersion } }
}

/** Actions that leave the login as it is. */
const KEEPS_LOGIN: ReadonlySet<Action> = new Set(['move-secret', 'extensions'])

/** An extension that was refused is tried again whenever the instance is looked at: what was in its way may be gone. */
function extensionSteps(observed: Observed): readonly Action[] {
  const { spec, status } = observed.instance
  const isInstalled = spec.extensions.every((name) => status?.extensions?.includes(name))
  const isRenewed = resetsNow(observed) && spec.extensions.length > 0
  return isInstalled && !isRenewed && !observed.extensionDropped ? [] : ['extensions']
}

const wantsReset = ({ instance }: Observed): boolean => (instance.status?.resetVersion ?? 0) < instance.spec.resetVersion

/** Why a reset that is wished cannot be carried out now. */
const hindranceOf = (observed: Observed) => (wantsReset(observed) ? HINDRANCES.get(observed.template) : undefined)

const resetsNow = (observed: Observed): boolean => wantsReset(observed) && !hindranceOf(observed)

/** A database that grew past its limit gets no logins, but a reset empties it. */
const loginWanted = (observed: Observed): boolean => observed.instance.spec.enabled && (!observed.oversize || resetsNow(observed))

const resetSteps = (observed: Observed): readonly Action[] => (resetsNow(observed) ? ['reset'] : [])

function passwordSteps({ instance, secret, passwordChanged }: Observed, at: Address): readonly Action[] {
  const wished = instance.spec.passwordVersion
  const isInForce = instance.status?.passwordVersion === wished
  const draw = drawing(secret, wished)
  if (draw) return isInForce ? ['doubt-password', draw, 'password'] : [draw, 'password']
  if (!isInForce || passwordChanged) return ['password']
  return isAsWritten(secret, at) ? [] : ['move-secret']
}

type Address = Pick<Credentials, 'host' | 'port'>

/** A Secret that somebody deleted or damaged comes back, with a new password: the old one is nowhere else. */
function drawing(secret: Observed['secret'], wished: number): 'secret' | 'renew-secret' | undefined {
  if (typeof secret !== 'object') return secret === undefined ? 'secret' : 'renew-secret'
  return secret.passwordVersion === wished ? undefined : 'renew-secret'
}

function isAsWritten(secret: Observed['secret'], { host, port }: Address): boolean {
  return typeof secret === 'object' && secret.tidy && secret.host === host && secret.port === port
}

function loginSteps({ instance }: Observed, wanted: boolean): readonly Action[] {
  if (instance.status?.isEnabled === wanted) return []
  return [wanted ? 'enable' : 'disable']
}

function standing(observed: Observed, wanted: boolean): Verdict {
  if (wanted) return ready(InstanceReason.Claimed, 'the database is there and its login works')
  if (observed.instance.spec.enabled)
    return notReady(InstanceReason.SizeExceeded, 'the database grew past its limit; reset or delete it')
  return notReady(InstanceReason.Disabled, 'disabled: no logins')
}
