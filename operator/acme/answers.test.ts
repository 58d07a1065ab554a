import { expect, test } from 'vitest'
import type { AcmeSettings } from '../../crds/tunnel-endpoint.ts'
import { createChallengeCheck } from './answers.ts'
import type { OrderState } from './order-state.ts'
import type { OrderRequest } from './orders.ts'

const NOW = 1_800_000_000_000
const SETTINGS: AcmeSettings = {
  ...{ directoryUrl: 'https://127.0.0.1:14000/dir', agreeToTerms: true, challenge: 'http-01', check: true, nameservers: [] },
  ...{ accountKeyVersion: 1, revokeOnDelete: false },
}
/** Request for a tunnel whose port for HTTP nothing listens on. */
const REQUEST: OrderRequest = {
  ...{ namespace: 'acme--prod', certificate: 'c', identifier: 'a.tunnel.localhost', endpoint: 'e', settings: SETTINGS },
  ...{ publicHttpPort: 1, publicHttpsPort: 1, organization: 'acme', isShared: false },
  ...{ isRenewal: false, isRenewalOfCa: false, replaces: undefined },
}
const isAnswered = createChallengeCheck({
  accounts: { thumbprint: async () => 'thumbprint' },
  dns: { publish: () => expect.fail('no record is needed') },
  inspectRecord: () => expect.fail('no record is needed'),
  now: () => new Date(NOW),
})

interface Row {
  readonly phase: OrderState['phase']
  readonly checks: number
  readonly ageMs: number
  readonly gives: boolean | 'error'
}

test.each<Row>([
  { phase: 'check', checks: 0, ageMs: 0, gives: 'error' },
  { phase: 'check', checks: 2, ageMs: 0, gives: 'error' },
  { phase: 'check', checks: 3, ageMs: 0, gives: true },
  { phase: 'validate', checks: 0, ageMs: 0, gives: false },
  { phase: 'validate', checks: 0, ageMs: 10_000, gives: true },
  { phase: 'validate', checks: 3, ageMs: 500, gives: false },
  { phase: 'validate', checks: 3, ageMs: 1_000, gives: true },
])(
  'in the phase $phase, after $checks failed checks and $ageMs ms, an edge that cannot be reached gives: $gives',
  async (row) => {
    const answer = isAnswered(REQUEST, { phase: row.phase, checks: row.checks, since: NOW - row.ageMs }, { token: 'token' })
    if (row.gives === 'error') await expect(answer).rejects.toThrow('cannot be reached (ECONNREFUSED): open port 1')
    else expect(await answer).toBe(row.gives)
  },
)
