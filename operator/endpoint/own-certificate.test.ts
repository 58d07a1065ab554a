import { beforeAll, expect, test } from 'vitest'
import { createCa, issueCertificate, type KeyPair } from '../certificates/local-ca.ts'
import { encodeSecret } from '../secret-data.ts'
import { expiringSoon, problemOf } from './own-certificate.ts'

const now = new Date()
const DAY = 86_400_000
const later = new Date(now.getTime() + 100 * DAY)
const earlier = new Date(now.getTime() - DAY)
let ca: KeyPair
let pairs: Readonly<Record<'good' | 'other' | 'single' | 'nested', KeyPair>>

beforeAll(async () => {
  ca = await createCa(now)
  const issued = (name: string) => issueCertificate({ ca, names: [name], now })
  pairs = {
    good: await issued('*.tunnels.example.org'),
    other: await issued('*.example.org'),
    single: await issued('tunnels.example.org'),
    nested: await issued('*.a.tunnels.example.org'),
  }
})

interface Case {
  readonly does: string
  readonly certificate?: () => string
  readonly key?: () => string
  readonly type?: string
  readonly at?: Date
  readonly says: RegExp | undefined
}

test.each<Case>([
  { does: 'a certificate for the wildcard is usable', says: undefined },
  { does: 'a chain is usable', certificate: () => `${pairs.good.certificate}${ca.certificate}`, says: undefined },
  { does: 'another type is named', type: 'Opaque', says: /must have the type kubernetes\.io\/tls, not Opaque$/ },
  { does: 'text is no certificate', certificate: () => 'text', says: /tls\.crt is no certificate in PEM$/ },
  { does: 'an empty certificate is named', certificate: () => '', says: /tls\.crt is no certificate in PEM$/ },
  {
    does: 'the key of another certificate is named',
    key: () => pairs.other.key,
    says: /tls\.key must be the private key of the first/,
  },
  { does: 'text is no key', key: () => 'text', says: /tls\.key must be the private key/ },
  {
    does: 'a wildcard of the parent does not suffice',
    ...{ certificate: () => pairs.other.certificate, key: () => pairs.other.key },
    says: /the certificate is for \*\.example\.org; it must be for \*\.tunnels\.example\.org$/,
  },
  {
    does: 'the domain itself does not suffice',
    ...{ certificate: () => pairs.single.certificate, key: () => pairs.single.key },
    says: /the certificate is for tunnels\.example\.org; it must/,
  },
  {
    does: 'a wildcard of a deeper level does not suffice',
    ...{ certificate: () => pairs.nested.certificate, key: () => pairs.nested.key },
    says: /is for \*\.a\.tunnels\.example\.org; it must/,
  },
  { does: 'an expired certificate is named', at: later, says: /has expired at \d{4}-.*Z: renew it$/ },
  { does: 'a future certificate is named', at: earlier, says: /is not valid before .*the clock of this machine may be wrong$/ },
])('$does', ({ certificate, key, type = 'kubernetes.io/tls', at = now, says }) => {
  const data = encodeSecret({
    'tls.crt': certificate?.() ?? pairs.good.certificate,
    'tls.key': key?.() ?? pairs.good.key,
  })
  const said = problemOf({ type, data }, { name: 'own', domain: 'tunnels.example.org', now: at })
  if (says) expect(said).toMatch(says)
  else expect(said).toBeUndefined()
})

test('a missing Secret is named, with what to do', () => {
  expect(problemOf(undefined, { name: 'own', domain: 'a.test', now })).toBe(
    'the Secret own in mooring-system does not exist: create it, with type kubernetes.io/tls',
  )
})

interface Expiry {
  readonly does: string
  /** Lifetime and rest in days. */
  readonly days: number
  readonly left: number
  readonly isSoon: boolean
  readonly status?: 'expired' | 'valid'
}

test.each<Expiry>([
  { does: 'of 90 days is announced 9 days before its end', days: 90, left: 8.9, isSoon: true },
  { does: 'of 90 days is not announced earlier', days: 90, left: 9.1, isSoon: false },
  { does: 'of 6 days is announced a day before its end', days: 6, left: 0.9, isSoon: true },
  { does: 'of a year is announced two weeks before its end', days: 365, left: 14.1, isSoon: false },
  { does: 'that has expired is another condition', days: 90, left: -1, isSoon: false, status: 'expired' },
])('a certificate $does', ({ days, left, isSoon, status = 'valid' }) => {
  const [obtainedAt, expiresAt] = [new Date(0).toISOString(), new Date(days * DAY).toISOString()]
  const about = { secretName: 'tunnels-tls', now: new Date((days - left) * DAY) }
  const condition = expiringSoon({ status, obtainedAt, expiresAt }, about)
  if (isSoon) expect(condition?.message).toBe(`the certificate in the Secret tunnels-tls expires at ${expiresAt}: renew it`)
  else expect(condition).toBeUndefined()
})
