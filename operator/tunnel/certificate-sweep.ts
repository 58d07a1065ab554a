import { Secret } from '../../crds/core.ts'
import { Tunnel, TunnelReason } from '../../crds/tunnel.ts'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { type Clock, pause, systemClock } from '../../store/clock.ts'
import { notReady } from '../../store/conditions.ts'
import { isStoreError } from '../../store/errors.ts'
import { keyOf } from '../../store/key-string.ts'
import type { Key, Store } from '../../store/port.ts'
import type { Report } from '../reporter.ts'
import { signsFor } from './certificate-issuer.ts'
import { changedAt } from './findings.ts'
import { certificateIn, type ObserveDeps } from './observe.ts'
import { isGood } from './plan.ts'
import { certificateKey, hostOf } from './resources.ts'

export interface CertificateSweepDeps extends Omit<ObserveDeps, 'regions' | 'store'> {
  readonly store: Pick<Store, 'get'>
  readonly report: Report
  /** What a look throws; the sweep goes on with the next ones. */
  readonly onError: (error: unknown) => void
  readonly clock?: Clock
}

/**
 * Each costs the API server a read. Ten thousand tunnels are looked at in an hour and a half. Many at once and seldom: a read by itself
 * takes a process that was at rest a millisecond, among twenty a third of one.
 */
const LOOKS = 20
const LOOK_MS = 10_000
/** Where one had to be corrected, there may be more of them: of thousands that are lost at once. */
const LOOKS_AFTER_A_LOSS = 50
const LOOK_AFTER_A_LOSS_MS = 1_000

/** A certificate that its tunnel's status speaks of. */
interface Claim {
  readonly tunnel: Tunnel
  readonly endpoint: TunnelEndpoint
  readonly hostname: string
}

/** When a certificate ends by its tunnel's status, in milliseconds since the epoch. */
const endOf = ({ status }: Tunnel): number => Date.parse(status?.certificate?.expiresAt ?? '')

/**
 * Finds certificates that are valid by the status of their tunnel, and whose Secret is gone or damaged: nobody watches Secrets. Such a
 * status is corrected, which has the tunnel reconciled, and its certificate obtained anew; edges fetch it by the time in the status.
 */
export function createCertificateSweep(deps: CertificateSweepDeps): { run(signal: AbortSignal): Promise<void> } {
  const { store, tunnels, endpoints, report, now, onError, clock = systemClock } = deps
  /** By uid of the tunnel, the version of its Secret that was found good: while it has that, nothing is looked at but the version. */
  const sound = new Map<string, string>()
  let round: readonly Key[] = []
  /** In it, who is next. */
  let next = 0
  /** Of few tunnels that are damaged again and again, no more often than others are looked at. */
  let nextRound = clock.now()

  function claimOf(key: Key): Claim | undefined {
    const tunnel = tunnels.get(key)
    const { hostname, endpointRef, certificate } = tunnel?.status ?? {}
    if (!tunnel || tunnel.metadata.deletionTimestamp !== undefined || certificate?.status !== 'valid') return undefined
    const endpoint = endpointRef && endpoints.get(endpointRef)
    return endpoint && hostname !== undefined ? { tunnel, endpoint, hostname } : undefined
  }

  /** @returns whether all is well */
  async function look(claim: Claim): Promise<boolean> {
    const { tunnel, endpoint, hostname } = claim
    const { uid } = tunnel.metadata
    const secret = await store.get(Secret, certificateKey(endpoint, hostname))
    const version = secret && `${secret.metadata.uid} ${secret.metadata.resourceVersion}`
    if (version !== undefined && sound.get(uid) === version) return true
    const held = secret && certificateIn(secret, deps, { endpoint, hostname })
    // One that ends sooner than was said is an earlier one, put back; one that ends later was renewed for another tunnel meanwhile.
    const isKept = isGood({ certificate: held, now: now().getTime() }) && !(held && held.expiresAt < endOf(tunnel))
    if (version !== undefined && isKept) sound.set(uid, version)
    else await correct(claim)
    return isKept
  }

  async function correct({ tunnel, endpoint, hostname }: Claim): Promise<void> {
    const message = `the certificate for ${hostOf(endpoint, hostname)} is gone or damaged: another is being obtained`
    const certificate = { ...tunnel.status?.certificate, status: 'obtaining' } as const
    const said = { certificate, ...changedAt({ tunnel, now: now().getTime() }) }
    try {
      await report(Tunnel, tunnel, notReady(TunnelReason.ObtainingCertificate, message), said)
    } catch (error) {
      // Whoever was quicker has it in view by now, or the next round has.
      if (!isStoreError(error, 'conflict')) throw error
    }
  }

  function startRound(): void {
    nextRound = clock.now() + LOOK_MS
    round = tunnels.list().map(keyOf)
    next = 0
    for (const uid of [...sound.keys()]) if (!tunnels.byUid(uid)) sound.delete(uid)
  }

  /** @returns whether all is well with the next ones of the round */
  async function lookAtSome(looks: number): Promise<boolean> {
    if (next >= round.length && clock.now() >= nextRound) startRound()
    const claims = round.slice(next, next + looks).flatMap((key) => claimOf(key) ?? [])
    next += looks
    // Where nobody signs, no other could be obtained.
    const mendable = claims.filter(({ endpoint }) => signsFor(deps.issuers, endpoint))
    return (await Promise.all(mendable.map(isWell))).every(Boolean)
  }

  async function isWell(claim: Claim): Promise<boolean> {
    try {
      return await look(claim)
    } catch (error) {
      onError(error)
      return true
    }
  }

  async function run(signal: AbortSignal): Promise<void> {
    let isAllWell = true
    while (!signal.aborted) {
      isAllWell = await lookAtSome(isAllWell ? LOOKS : LOOKS_AFTER_A_LOSS)
      await pause(clock, isAllWell ? LOOK_MS : LOOK_AFTER_A_LOSS_MS, signal)
    }
  }

  return { run }
}
