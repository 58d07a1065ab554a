import type { Accounts } from './account.ts'
import { checkChallenge } from './challenge-check.ts'
import type { DnsRecords } from './dns/records.ts'
import { CheckError } from './order-failure.ts'
import type { IsChallengeReady } from './orders.ts'
import type { InspectRecord } from './dns/record-inspection.ts'

interface AnswersDeps {
  readonly accounts: Pick<Accounts, 'thumbprint'>
  readonly dns: Pick<DnsRecords, 'publish'>
  readonly inspectRecord: InspectRecord
  readonly now: () => Date
}

/** Time in milliseconds within which the edges must know a token that was written to the status of the tunnel. */
const EDGES_MS = 10_000
/** Time in milliseconds within which the authoritative DNS servers must have a new record. */
const PROPAGATION_MS = 180_000
/** Time in milliseconds that edges get to learn a token when the check is off or does not work. */
const UNCHECKED_MS = 1_000
/**
 * Failed checks by a request to the edges that delay an order, about a minute in all. Then the order is made: the operator may be unable to reach its own
 * public address (a NAT without hairpin), or have another view of DNS than the CA.
 */
const CHECKS_MAX = 3

/** Whether a phase began within these milliseconds. A negative age means that the clock was set back: the time counts as over. */
const isWithin = (ageMs: number, limitMs: number): boolean => ageMs >= 0 && ageMs < limitMs

/** Creates the check whether a challenge is answered. For dns-01 it first writes the record. */
export function createChallengeCheck({ accounts, dns, inspectRecord, now }: AnswersDeps): IsChallengeReady {
  const byDns: IsChallengeReady = async ({ certificate, identifier, settings }, { since }, { token }) => {
    const age = now().getTime() - since
    const keyAuthorization = `${token}.${await accounts.thumbprint(settings)}`
    const unpublished = await dns.publish({ certificate, identifier, token, keyAuthorization, settings })
    if (!unpublished) return true
    if (unpublished.early && age >= 0 && age < PROPAGATION_MS) return false
    throw new CheckError(unpublished.message)
  }

  const byEdges: IsChallengeReady = async (request, state, { token }) => {
    const age = now().getTime() - state.since
    const isForced = state.checks >= CHECKS_MAX
    const isOrdered = state.phase === 'validate'
    if (!request.settings.check || (isForced && isOrdered)) return !isWithin(age, UNCHECKED_MS)
    const keyAuthorization = `${token}.${await accounts.thumbprint(request.settings)}`
    const unanswered = await checkChallenge({ ...request, token, keyAuthorization })
    if (!unanswered || isForced) return true
    // Without the validation the authorization of an order that exists fails in any case.
    if (isOrdered) return !isWithin(age, EDGES_MS)
    if (unanswered.early && isWithin(age, EDGES_MS)) return false
    throw new CheckError(unanswered.message)
  }

  const byRecord: IsChallengeReady = async ({ settings, identifier }, _state, { issuers, isHashed }) => {
    const { problem } = await inspectRecord({ settings, identifier, issuers, isHashed })
    if (problem !== undefined) throw new CheckError(problem)
    return true
  }

  return (request, state, challenge) => {
    const { challenge: type } = request.settings
    const answer = type === 'dns-01' ? byDns : type === 'dns-persist-01' ? byRecord : byEdges
    return answer(request, state, challenge)
  }
}
