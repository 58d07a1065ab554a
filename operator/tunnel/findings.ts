import type { Condition } from '../../crds/kind.ts'
import { annotations } from '../../crds/names.ts'
import { RENEWING, type Tunnel, type TunnelCertificate } from '../../crds/tunnel.ts'
import { type Verdict, withCondition, withoutCondition } from '../../store/conditions.ts'
import type { Findings } from '../reporter.ts'
import { type HeldCertificate, isGood, renewal, type World } from './plan.ts'
import { certificateName } from './resources.ts'

/** The conditions beside `Ready`. */
export function conditionsOf({ tunnel, now }: World, renewing: Verdict | undefined): readonly Condition[] {
  const { conditions } = tunnel.status ?? {}
  const stamp = { type: RENEWING, generation: tunnel.metadata.generation, now: new Date(now) }
  return renewing ? withCondition(conditions, renewing, stamp) : withoutCondition(conditions, RENEWING)
}

/** What the status says beside its conditions (contract, "Tunnel certificate"). */
export function findings(world: World): Findings<typeof Tunnel> {
  const { tunnel, assigned, certificate, now } = world
  const { hostname, certificate: before } = tunnel.status ?? {}
  // Of one that is no good, the attempt that failed has said all.
  if (!assigned || hostname === undefined || !certificate || !isGood(world)) return {}
  const status = certificateStatus(certificate, certificateName(assigned, hostname))
  // A failed renewal stays in view until it is made good; a merge patch takes out what is null.
  const isMended = certificate.renewAt > now && hasFailure(before)
  return { certificate: isMended ? ({ ...status, ...NO_FAILURE } as unknown as TunnelCertificate) : status }
}

/**
 * When the spec of a generation that the status does not speak of yet was written: with the first word about it, so it costs no write. REST
 * says so itself; a change that it says nothing of was kubectl's, and is as old as the look at it.
 */
export function changedAt({
  tunnel: { metadata, status },
  now,
}: Pick<World, 'tunnel' | 'now'>): Pick<Findings<typeof Tunnel>, 'updatedAt'> {
  const { generation } = metadata
  if (generation === 1 || status?.observedGeneration === generation) return {}
  const said = Date.parse(metadata.annotations?.[annotations.updatedAt] ?? '')
  const isNews = said > Date.parse(status?.updatedAt ?? metadata.creationTimestamp)
  return { updatedAt: at(isNews ? said : now) }
}

const hasFailure = (before: TunnelCertificate | undefined): boolean => (before?.lastError ?? before?.nextAttemptAt) !== undefined

const NO_FAILURE = { lastError: null, nextAttemptAt: null }

/** What it says of a certificate that could not be had; one that is still good serves on. */
export function failure(world: World, lastError: string, nextAttemptAt: number): Findings<typeof Tunnel> {
  const good = isGood(world)
  const status = good ? 'valid' : world.certificate?.fits === true ? 'expired' : 'failed'
  return {
    conditions: conditionsOf(world, good ? renewal(lastError) : undefined),
    certificate: { ...world.tunnel.status?.certificate, status, lastError, nextAttemptAt: at(nextAttemptAt) },
  }
}

const at = (ms: number): string => new Date(ms).toISOString()

const certificateStatus = ({ issuer, obtainedAt, expiresAt }: HeldCertificate, domain: string): TunnelCertificate => ({
  ...{ status: 'valid', domain, issuer },
  ...{ obtainedAt: at(obtainedAt), expiresAt: at(expiresAt) },
})
