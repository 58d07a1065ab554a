import type { AcmeSettings } from '../../../crds/tunnel-endpoint.ts'
import { MooringError } from '../../../shared/errors.ts'
import type { Accounts } from '../account.ts'
import { AcmeError } from '../acme-error.ts'
import {
  hashedUris,
  isParameterValue,
  issuersIn,
  type Permission,
  persistentName,
  type PersistentRecord,
  recordFor,
  recordProblem,
} from './persistent-record.ts'
import { resolverWith, textsAt } from './zone.ts'

/** Certificate whose record is inspected. */
export interface Inspection {
  readonly settings: AcmeSettings
  /** Domain name of the certificate, which may be a wildcard. */
  readonly identifier: string
  /** Issuer domain names of the challenge; undefined before the order: those of the directory count. */
  readonly issuers?: readonly string[] | undefined
  /** Whether the record has a hash of the account (draft 02) in place of its URL; undefined before the order: the directory counts. */
  readonly isHashed?: boolean | undefined
}

export interface Inspected {
  /** Record that the CA looks for; undefined when the CA names its issuer domain names in challenges only. */
  readonly record: PersistentRecord | undefined
  /** Why DNS does not have the record, with what to do; undefined when it has it, when it is unknown, or when the check is off. */
  readonly problem: string | undefined
  /** Whether DNS has answered, or was not asked. False: the problem is that it could not be asked. */
  readonly isKnown: boolean
}

/** Inspects a record of the challenge dns-persist-01. @throws AcmeError and MooringError like {@link Accounts.open}, whose account it names */
export type InspectRecord = (inspection: Inspection) => Promise<Inspected>

export function createRecordInspector({
  accounts,
  now,
}: {
  readonly accounts: Pick<Accounts, 'open' | 'thumbprint'>
  readonly now: () => Date
}): InspectRecord {
  async function permissionFor({ settings, identifier, issuers, isHashed }: Inspection): Promise<Permission | undefined> {
    const { client, url: accountUrl } = await accounts.open(settings)
    const { meta = {} } = await client.directory()
    const { accountHashPrefix: prefix, issuerDomainNames, caaIdentities } = meta
    const hashes = isHashed ?? prefix !== undefined
    const thumbprint = hashes ? await accounts.thumbprint(settings) : ''
    const accountUris = hashes ? hashedUris(identifier, { prefix: requirePrefix(prefix), thumbprint, accountUrl }) : [accountUrl]
    if (!accountUris.every(isParameterValue)) {
      const why = 'the URL of the account has characters that a record of dns-persist-01 cannot have'
      throw new AcmeError('acme_rejected', `${why}: choose another challenge`)
    }
    const names = issuers ?? issuersIn(hashes ? issuerDomainNames : caaIdentities)
    return names && { identifier, issuers: names, accountUris }
  }

  async function lookedUp(permission: Permission, { nameservers }: AcmeSettings): Promise<Omit<Inspected, 'record'>> {
    const name = persistentName(permission.identifier)
    const { name: place, value } = recordFor(permission)
    const needed = `the TXT record ${place} must have the value "${value}"`
    try {
      const answers = await textsAt(name, resolverWith(nameservers))
      const problems = answers.map(({ title, texts, rcode }) => {
        const problem = isAnswer(rcode) ? recordProblem(texts, permission, now().getTime()) : `answers with ${rcode}`
        return problem && `${title} ${problem} (asked for ${name})`
      })
      const found = problems.find((problem) => problem !== undefined)
      return { isKnown: true, problem: found && `${needed}; ${found}` }
    } catch (error) {
      if (!(error instanceof MooringError) || !error.code.startsWith('dns_')) throw error
      return { isKnown: false, problem: `${needed}; ${error.message}` }
    }
  }

  return async function inspect(inspection) {
    const permission = await permissionFor(inspection)
    if (!permission) return { record: undefined, problem: undefined, isKnown: true }
    const record = recordFor(permission)
    if (!inspection.settings.check) return { record, problem: undefined, isKnown: true }
    return { record, ...(await lookedUp(permission, inspection.settings)) }
  }
}

function requirePrefix(prefix: string | undefined): string {
  if (prefix !== undefined) return prefix
  throw new AcmeError('acme_invalid_answer', 'the directory of the certificate authority has no accountHashPrefix')
}

const isAnswer = (rcode: string): boolean => rcode === 'NOERROR' || rcode === 'NXDOMAIN'
