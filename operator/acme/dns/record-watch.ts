import { EndpointReason, type TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import { MooringError } from '../../../shared/errors.ts'
import { type Backoff, backoffMs } from '../../../shared/timers.ts'
import type { Cache } from '../../../store/cache.ts'
import type { Key } from '../../../store/port.ts'
import type { Outcome } from '../../runtime/controller.ts'
import { AcmeError } from '../acme-error.ts'
import type { PersistentRecord } from './persistent-record.ts'
import { isReported } from '../order-failure.ts'
import type { Inspection, InspectRecord } from './record-inspection.ts'

/** State of the record of an endpoint with the challenge dns-persist-01, for its status. */
export interface RecordState {
  /** Record that the CA looks for; undefined while it is unknown. */
  readonly record: PersistentRecord | undefined
  /** Why there is no such record yet; undefined when there is. */
  readonly problem: { readonly reason: string; readonly message: string } | undefined
}

/** Watches the records in DNS, so that their names and values are known before the first tunnel is created. */
export interface RecordWatch {
  /** Returns the state of an endpoint's record; undefined before the first check, and for other challenges. */
  stateOf(endpoint: TunnelEndpoint): RecordState | undefined
  /** Checks the record of an endpoint. */
  reconcile(key: Key): Promise<Outcome>
}

interface RecordWatchDeps {
  readonly endpoints: Cache<typeof TunnelEndpoint>
  readonly inspect: InspectRecord
  readonly random: () => number
  /** Called with the name of an endpoint whose state has changed. `isFound`: the record was missing and is in DNS now. */
  readonly onChange: (endpoint: string, isFound: boolean) => void
}

/** Intervals of the checks in milliseconds: of a missing record, and of one that DNS has. */
const [MISSING_MS, FOUND_MS] = [15_000, 600_000]
/** Wait after a failure to open the account. */
const ACCOUNT_BACKOFF: Backoff = { baseMs: 30_000, maxMs: 1_800_000 }
/** Hostname that stands for those of all tunnels. */
const ANY = '0123456789abcdef'

/** State after a change of the settings, until the next check. */
const UNKNOWN: RecordState = {
  record: undefined,
  problem: { reason: EndpointReason.AccountMissing, message: 'the account at the certificate authority is being opened' },
}

/** Returns the inspection of an endpoint's record; undefined for an endpoint that needs none, such as one without edges. Pure. */
function inspectionOf({ spec, metadata }: TunnelEndpoint): Inspection | undefined {
  const { issuer, acme: settings, certificates, domain, replicas } = spec
  const isUsed = issuer === 'acme' && replicas > 0 && metadata.deletionTimestamp === undefined
  if (!isUsed || settings?.challenge !== 'dns-persist-01' || !settings.agreeToTerms) return undefined
  return { settings, identifier: certificates === 'wildcard' ? `*.${domain}` : `${ANY}.${domain}` }
}

export function createRecordWatch({ endpoints, inspect, random, onChange }: RecordWatchDeps): RecordWatch {
  /** States by endpoint, with the inspection that each is the result of. */
  const states = new Map<string, { readonly about: string; readonly state: RecordState }>()
  /** Consecutive failures to open the account, by endpoint. */
  const failures = new Map<string, number>()

  function keep(name: string, about: string, state: RecordState): void {
    const before = states.get(name)
    states.set(name, { about, state })
    if (before?.about === about && JSON.stringify(before.state) === JSON.stringify(state)) return
    onChange(name, before?.state.problem !== undefined && state.problem === undefined)
  }

  async function check(endpoint: TunnelEndpoint, inspection: Inspection): Promise<Outcome> {
    const { name } = endpoint.metadata
    const about = JSON.stringify(inspection)
    const { record, problem, isKnown } = await inspect(inspection)
    failures.delete(name)
    const former = states.get(name)
    const isAsBefore = !isKnown && former?.about === about && former.state.problem === undefined
    // A DNS server that does not respond does not mean that the record is gone.
    if (!isAsBefore) {
      keep(name, about, {
        record,
        problem: problem === undefined ? undefined : { reason: EndpointReason.DnsRecordMissing, message: problem },
      })
    }
    if (problem === undefined) return { result: 'settled', reason: 'RecordFound', requeueAfterMs: FOUND_MS }
    return { result: 'waiting', reason: EndpointReason.DnsRecordMissing, requeueAfterMs: MISSING_MS }
  }

  /** Stores that the account could not be opened. A record that is in the status already stays there while the CA cannot be reached. */
  function accountFailed({ metadata: { name }, status }: TunnelEndpoint, inspection: Inspection, error: MooringError): Outcome {
    const count = (failures.get(name) ?? 0) + 1
    failures.set(name, count)
    const about = JSON.stringify(inspection)
    const isSame = (states.get(name)?.about ?? about) === about
    const { isTransient, retryAfterMs = 0 } = error instanceof AcmeError ? error : { isTransient: false }
    const problem = { reason: EndpointReason.AccountMissing, message: error.message }
    if (!isSame || !isTransient || status?.acmeRecord === undefined) keep(name, about, { record: undefined, problem })
    const requeueAfterMs = Math.max(retryAfterMs, backoffMs(ACCOUNT_BACKOFF, count, random))
    return { result: 'waiting', reason: EndpointReason.AccountMissing, requeueAfterMs }
  }

  return {
    stateOf(endpoint) {
      const { about, state } = states.get(endpoint.metadata.name) ?? {}
      const inspection = inspectionOf(endpoint)
      return about === undefined || !inspection || about === JSON.stringify(inspection) ? state : UNKNOWN
    },
    async reconcile(key) {
      const endpoint = endpoints.get(key)
      const inspection = endpoint && inspectionOf(endpoint)
      if (!inspection) {
        failures.delete(key.name)
        if (states.delete(key.name)) onChange(key.name, false)
        return { result: 'settled', reason: 'NoRecord' }
      }
      try {
        return await check(endpoint, inspection)
      } catch (error) {
        if (!(error instanceof MooringError) || !isReported(error)) throw error
        return accountFailed(endpoint, inspection, error)
      }
    },
  }
}
