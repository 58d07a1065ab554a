import { createHash } from 'node:crypto'
import { z } from 'zod'
import { Secret } from '../../../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import { TSIG_ALGORITHMS } from '../../../crds/parts/acme-settings.ts'
import type { AcmeSettings } from '../../../crds/tunnel-endpoint.ts'
import { MooringError } from '../../../shared/errors.ts'
import type { Key, Store } from '../../../store/port.ts'
import { keepSecret, keptSecret } from '../../installation/kept-secret.ts'
import { stepDone } from '../../reporter.ts'
import type { Outcome } from '../../runtime/controller.ts'
import { eventsOf, type Source } from '../../runtime/source.ts'
import { decodeSecret } from '../../secret-data.ts'
import type { OrderStore } from '../order-state.ts'
import { serverIn } from './exchange.ts'
import type { TsigKey } from './tsig.ts'
import { updateTxt } from './update.ts'
import { missingAt, placeOf, resolverWith } from './zone.ts'

/** Record that may be in DNS because of an order. */
const KeptRecord = z.object({
  /** Name of the certificate's Secret. The record is needed as long as its order has this token. */
  certificate: z.string(),
  token: z.string(),
  zone: z.string(),
  name: z.string(),
  value: z.string(),
  server: z.string(),
  tsigKeyName: z.string(),
  tsigAlgorithm: z.enum(TSIG_ALGORITHMS),
  tsigSecretName: z.string(),
})
type KeptRecord = z.output<typeof KeptRecord>
const KeptRecords = z.array(KeptRecord)

/** Secret with the records that may be in DNS. */
export const DNS_RECORDS_SECRET = 'acme-dns-records'
/** Entry of the Secret of `spec.acme.dns.tsigSecretName`. */
export const TSIG_ENTRY = 'tsig-key'
const LEDGER: Key = { name: DNS_RECORDS_SECRET }

/** Minimum interval between two updates of a record that the servers do not have yet, in milliseconds. */
const AGAIN_MS = 15_000
/** Time in milliseconds that authoritative servers get after an update when the check is off. */
const UNCHECKED_MS = 10_000

/** Challenge of type dns-01, which DNS answers. */
export interface DnsChallenge {
  /** Name of the certificate's Secret. */
  readonly certificate: string
  /** Domain name of the certificate, which may be a wildcard. */
  readonly identifier: string
  readonly token: string
  /** Token and thumbprint of the account's key. */
  readonly keyAuthorization: string
  readonly settings: AcmeSettings
}

/** Failed or unfinished attempt to publish. `early`: the record was written, but some servers do not have it yet. */
export interface Unpublished {
  readonly message: string
  readonly early: boolean
}

/** TXT records of dns-01 challenges (RFC 8555, section 8.4), written by dynamic updates and removed when their orders end. */
export interface DnsRecords {
  /**
   * Writes the record unless the authoritative servers of its zone have it. Returns undefined when they have it. The order's token must be stored
   * before the call: records without an order are removed.
   */
  publish(challenge: DnsChallenge): Promise<Unpublished | undefined>
  /** Requests a reconcile, which removes the records of ended orders. */
  recheck(): void
  /** Removes records that no order needs, including those of earlier processes. */
  reconcile(): Promise<Outcome>
  readonly source: Source
}

interface DnsRecordsDeps {
  readonly store: Store
  readonly orders: Pick<OrderStore, 'read'>
  readonly now: () => Date
}

/** Returns the name of the record of a challenge, which is the same for a domain and its wildcard. */
export const challengeName = (identifier: string): string => `_acme-challenge.${identifier.replace(/^\*\./, '')}`

export function createDnsRecords({ store, orders, now }: DnsRecordsDeps): DnsRecords {
  const queues = new Set<(key: Key) => void>()
  const recheck = () => {
    for (const enqueue of queues) enqueue(LEDGER)
  }
  /** Certificates whose record is being written. A reconcile leaves these alone; the one after the write decides about them. */
  const writing = new Set<string>()
  /** Times of the last updates by the record's value, in milliseconds since the epoch. */
  const written = new Map<string, number>()
  const ledger = createLedger(store)

  async function publish(challenge: DnsChallenge): Promise<Unpublished | undefined> {
    writing.add(challenge.certificate)
    try {
      return await published(challenge)
    } catch (error) {
      if (!(error instanceof MooringError) || !error.code.startsWith('dns_')) throw error
      return { message: error.message, early: false }
    } finally {
      writing.delete(challenge.certificate)
      recheck()
    }
  }

  async function published({ certificate, identifier, token, keyAuthorization, settings }: DnsChallenge) {
    const { dns } = settings
    if (!dns) throw new MooringError('dns_rejected', 'challenge dns-01 needs spec.acme.dns')
    const value = createHash('sha256').update(keyAuthorization).digest('base64url')
    const server = serverIn(dns.server)
    const resolver = resolverWith(settings.nameservers)
    const place = await placeOf(challengeName(identifier), { server, zone: dns.zone, resolver })
    const missing = async () => {
      if (settings.check) return missingAt({ ...place, value }, { server, resolver })
      const age = now().getTime() - (written.get(value) ?? 0)
      return age >= 0 && age < UNCHECKED_MS ? 'the record was written a moment ago' : undefined
    }
    const at = written.get(value)
    const isRecent = at !== undefined && Math.abs(now().getTime() - at) < AGAIN_MS
    const before = at === undefined && !settings.check ? 'not written yet' : await missing()
    if (before === undefined || isRecent) return before === undefined ? undefined : { message: before, early: true }
    const { tsigKeyName, tsigAlgorithm, tsigSecretName } = dns
    await ledger.add({ certificate, token, ...place, value, server: dns.server, tsigKeyName, tsigAlgorithm, tsigSecretName })
    stepDone('dns.recorded', certificate)
    await updateTxt(server, { do: 'add', ...place, value }, await keyOf(store, dns), now)
    written.set(value, now().getTime())
    stepDone('dns.written', certificate)
    const after = await missing()
    return after === undefined ? undefined : { message: after, early: true }
  }

  async function isNeeded({ certificate, token }: KeptRecord): Promise<boolean> {
    if (writing.has(certificate)) return true
    const { state } = (await orders.read(certificate)) ?? {}
    return state !== undefined && state.phase !== 'issued' && state.token === token
  }

  async function reconcile(): Promise<Outcome> {
    const failures: unknown[] = []
    for (const record of await ledger.read()) {
      if (await isNeeded(record)) continue
      try {
        await updateTxt(serverIn(record.server), { do: 'remove', ...record }, await keyOf(store, record), now)
        written.delete(record.value)
        await ledger.remove(record)
        stepDone('dns.removed', record.certificate)
      } catch (error) {
        failures.push(error)
      }
    }
    // Only the first failure is logged; the others most likely have the same reason.
    if (failures.length > 0) throw failures[0]
    return { result: 'settled', reason: 'RecordsRemoved' }
  }

  return {
    publish,
    recheck,
    reconcile,
    source: {
      ...eventsOf((enqueue) => {
        queues.add(enqueue)
        return () => void queues.delete(enqueue)
      }),
      initial: () => [LEDGER],
    },
  }
}

/** Reads the key of updates. @throws MooringError `dns_key_unusable` */
async function keyOf(
  store: Store,
  about: Pick<KeptRecord, 'tsigKeyName' | 'tsigAlgorithm' | 'tsigSecretName'>,
): Promise<TsigKey> {
  const { tsigKeyName: name, tsigAlgorithm: algorithm, tsigSecretName } = about
  const found = await store.get(Secret, { namespace: SYSTEM_NAMESPACE, name: tsigSecretName })
  const secret = found && tsigSecretIn(decodeSecret(found.data, TSIG_ENTRY) ?? '')
  if (secret) return { name, algorithm, secret }
  const why = `the Secret ${tsigSecretName} of spec.acme.dns in ${SYSTEM_NAMESPACE} has no entry ${TSIG_ENTRY} in base64`
  throw new MooringError('dns_key_unusable', why)
}

/** Returns the secret of a TSIG key. The text is base64, or a key file of BIND as `tsig-keygen` prints it; undefined for any other text. */
export function tsigSecretIn(text: string): Buffer | undefined {
  const base64 = (/\bsecret\s+"([^"]*)"/.exec(text)?.[1] ?? text).replace(/\s+/g, '')
  return /^[A-Za-z0-9+/]{4,}={0,2}$/.test(base64) ? Buffer.from(base64, 'base64') : undefined
}

/** Creates the list of records that may be in DNS. A record enters it before it is written to DNS, and leaves it after it was removed from DNS. */
function createLedger(store: Store) {
  /** End of the last change. Changes run one after the other: of two at once one would be lost. */
  let last: Promise<unknown> = Promise.resolve()

  async function read(): Promise<readonly KeptRecord[]> {
    const secret = await store.get(Secret, { namespace: SYSTEM_NAMESPACE, name: DNS_RECORDS_SECRET })
    return recordsIn((secret && decodeSecret(secret.data, 'records')) ?? '[]')
  }

  function change(changed: (records: readonly KeptRecord[]) => readonly KeptRecord[]): Promise<void> {
    const act = async () => {
      const { records = '[]' } = await keptSecret(store, DNS_RECORDS_SECRET, async () => ({ records: '[]' }))
      await keepSecret(store, DNS_RECORDS_SECRET, { records: JSON.stringify(changed(recordsIn(records))) })
    }
    const done = last.then(act, act)
    last = done
    return done
  }

  const without = (records: readonly KeptRecord[], one: KeptRecord) => records.filter((each) => !isSame(each, one))
  return {
    read,
    add: (record: KeptRecord) => change((records) => [...without(records, record), record]),
    remove: (record: KeptRecord) => change((records) => without(records, record)),
  }
}

const isSame = (one: KeptRecord, other: KeptRecord): boolean =>
  one.server === other.server && one.zone === other.zone && one.name === other.name && one.value === other.value

/** Returns the records in a Secret; none when its content is invalid. */
function recordsIn(text: string): readonly KeptRecord[] {
  try {
    return KeptRecords.safeParse(JSON.parse(text)).data ?? []
  } catch {
    return []
  }
}
