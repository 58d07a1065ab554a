import { EndpointReason, type TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { conditionOf } from '../../store/conditions.ts'
import type { Acme } from '../acme/acme.ts'
import type { RecordState } from '../acme/dns/record-watch.ts'
import type { StatusFields } from '../reporter.ts'

/** Part of an endpoint's status that is about ACME. */
export interface AcmeStatus {
  readonly fields: StatusFields<typeof TunnelEndpoint>
  /** Why DNS does not have the record of dns-persist-01. */
  readonly problem: RecordState['problem']
}

type Accounts = Pick<Acme, 'recordState' | 'thumbprint' | 'accountKeyVersion'>

const NONE: AcmeStatus = { fields: { acmeThumbprint: null, acmeAccountKeyVersion: null, acmeRecord: null }, problem: undefined }

/** Returns the ACME part of an endpoint's status. Creates the key of the ACME account when there is none. */
export async function acmeStatusOf(endpoint: TunnelEndpoint, acme: Accounts | undefined): Promise<AcmeStatus> {
  const { issuer, acme: settings } = endpoint.spec
  if (!acme || issuer !== 'acme' || !settings?.agreeToTerms) return NONE
  const { challenge } = settings
  // Only edges need the thumbprint: without it they answer no challenge.
  const isOfEdges = challenge === 'http-01' || challenge === 'tls-alpn-01'
  const { record, problem } = challenge === 'dns-persist-01' ? recordOf(endpoint, acme) : NO_RECORD
  const acmeThumbprint = isOfEdges ? await acme.thumbprint(settings) : null
  return {
    fields: { acmeThumbprint, acmeAccountKeyVersion: await acme.accountKeyVersion(settings), acmeRecord: record },
    problem,
  }
}

interface StatedRecord {
  /** Null removes the record from the status, undefined keeps it. */
  readonly record: RecordState['record'] | null
  readonly problem: RecordState['problem']
}

const NO_RECORD: StatedRecord = { record: null, problem: undefined }

/** Returns the record and its problem. Before the first check after a start, record and problem in the status stay. */
function recordOf(endpoint: TunnelEndpoint, acme: Accounts): StatedRecord {
  const known = acme.recordState(endpoint)
  if (known) return { record: known.record ?? null, problem: known.problem }
  const before = conditionOf(endpoint, 'Ready')
  const isAboutRecord = before?.reason === EndpointReason.DnsRecordMissing || before?.reason === EndpointReason.AccountMissing
  return { record: undefined, problem: isAboutRecord ? before : undefined }
}
