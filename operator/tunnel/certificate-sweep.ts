import { Secret } from '../../crds/core.ts'
import { Tunnel, TunnelReason } from '../../crds/tunnel.ts'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { type Clock, pause, systemClock } from '../../shared/timers.ts'
import { notReady } from '../../store/conditions.ts'
import { isStoreError, keyOf, type Key, type Store } from '../../store/port.ts'
import type { Report } from '../reporter.ts'
import { signsFor } from './certificate-issuer.ts'
import { changedAt } from './status-fields.ts'
import { certificateIn, type ObserveDeps } from './observe.ts'
import { isGood } from './plan.ts'
import { certificateKey, hostOf } from './resources.ts'

export interface CertificateSweepDeps extends Omit<ObserveDeps, 'regions' | 'store' | 'databases'> {
  readonly store: Pick<Store, 'get'>
  readonly report: Report
  /** Receives the error of a check; the sweep continues with the next ones. */
  readonly onError: (error: unknown) => void
  readonly clock?: Clock
}

/**
 * Number of checks at a time. Each costs the API server a read; ten thousand tunnels are checked in an hour and a half. Batches are large
 * and rare: a single read takes an idle process a millisecond, one of twenty a third of that.
 */
const BATCH = 20
const POLL_MS = 10_000
/** Number and interval after a correction: thousands of Secrets may have been lost together. */
const BATCH_AFTER_LOSS = 50
const AFTER_LOSS_MS = 1_000

/** Certificate that is valid by its tunnel's status. */
interface Claim {
  readonly tunnel: Tunnel
  readonly endpoint: TunnelEndpoint
  readonly hostname: string
}

/** Expiry in the tunnel's status, in milliseconds since the epoch. */
const endOf = ({ status }: Tunnel): number => Date.parse(status?.certificate?.expiresAt ?? '')

/** Whether the sweep checks an endpoint's certificates. The endpoint's reconciler checks the administrator's own certificate. */
const isSwept = ({ spec }: TunnelEndpoint): boolean => spec.tlsSecretName === undefined

/**
 * Creates the sweep that finds certificates whose status is valid but whose Secret, which is not watched, is deleted or damaged. It
 * corrects the status, so that the tunnel is reconciled and the certificate obtained anew; edges load it when its time in the status
 * changes.
 */
export function createCertificateSweep(deps: CertificateSweepDeps): { run(signal: AbortSignal): Promise<void> } {
  const { store, tunnels, endpoints, report, now, onError, clock = systemClock } = deps
  /** Version of the last valid Secret by uid of the tunnel: an unchanged Secret is not parsed again. */
  const sound = new Map<string, string>()
  let round: readonly Key[] = []
  /** Index of the next tunnel in the round. */
  let next = 0
  /** Earliest start of the next round, which limits the checks of few tunnels that are damaged again and again. */
  let nextRound = clock.now()

  function claimOf(key: Key): Claim | undefined {
    const tunnel = tunnels.get(key)
    const { hostname, endpointRef, certificate } = tunnel?.status ?? {}
    if (!tunnel || tunnel.metadata.deletionTimestamp !== undefined || certificate?.status !== 'valid') return undefined
    const endpoint = endpointRef && endpoints.get(endpointRef)
    return endpoint && hostname !== undefined ? { tunnel, endpoint, hostname } : undefined
  }

  /** @returns whether the certificate is valid */
  async function check(claim: Claim): Promise<boolean> {
    const { tunnel, endpoint, hostname } = claim
    const { uid } = tunnel.metadata
    const secret = await store.get(Secret, certificateKey(endpoint, hostname))
    const version = secret && `${secret.metadata.uid} ${secret.metadata.resourceVersion}`
    if (version !== undefined && sound.get(uid) === version) return true
    const held = secret && certificateIn(secret, deps, { endpoint, hostname })
    // A certificate that expires earlier than the status says is an old one, restored; one that expires later was renewed for another
    // tunnel.
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
      // A concurrent writer causes a reconcile of its own; otherwise the next round corrects the status.
      if (!isStoreError(error, 'conflict')) throw error
    }
  }

  function startRound(): void {
    nextRound = clock.now() + POLL_MS
    round = tunnels.list().map(keyOf)
    next = 0
    for (const uid of [...sound.keys()]) if (!tunnels.byUid(uid)) sound.delete(uid)
  }

  /** @returns whether the next certificates of the round are all valid */
  async function checkNext(count: number): Promise<boolean> {
    if (next >= round.length && clock.now() >= nextRound) startRound()
    const claims = round.slice(next, next + count).flatMap((key) => claimOf(key) ?? [])
    next += count
    // Without an issuer, no other certificate could be obtained.
    const mendable = claims.filter(({ endpoint }) => isSwept(endpoint) && signsFor(deps.issuers, endpoint))
    return (await Promise.all(mendable.map(isWell))).every(Boolean)
  }

  async function isWell(claim: Claim): Promise<boolean> {
    try {
      return await check(claim)
    } catch (error) {
      onError(error)
      return true
    }
  }

  async function run(signal: AbortSignal): Promise<void> {
    let isAllWell = true
    while (!signal.aborted) {
      isAllWell = await checkNext(isAllWell ? BATCH : BATCH_AFTER_LOSS)
      await pause(clock, isAllWell ? POLL_MS : AFTER_LOSS_MS, signal)
    }
  }

  return { run }
}
