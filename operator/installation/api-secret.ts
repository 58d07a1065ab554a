import { randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import { z } from 'zod'
import { auditPath, createValueDigest, type ValueDigest } from '../../shared/audit-secrets.ts'
import type { Store } from '../../store/port.ts'
import type { KeyPair } from '../certificates/local-ca.ts'
import { createCertificates } from '../certificates/renewing.ts'
import { generateIssuerKey, publicKeySet } from './issuer-key.ts'
import { keepSecret, keptSecret, restoreSecret } from './kept-secret.ts'

/** Mooring's own issuer with its private key: one entry, JSON. */
export const ISSUER_SECRET = 'mooring-issuer'
export const ISSUER_ENTRY = 'issuer'
/** All that the API server needs to have, as files of a volume. */
export const API_SECRET = 'mooring-apiserver'

const TOKEN_SECRET_BYTES = 32
const LOOK_MS = 10_000
/** As the API server reads it. */
const TOKEN_SECRET = /^([0-9a-f]{2}){32,}$/

const Issuer = z.object({ issuer: z.string(), privateKey: z.looseObject({ kty: z.string() }) })

export interface ApiSecretDeps {
  readonly store: Store
  readonly ca: KeyPair
  /** Names and addresses that callers reach the API by. */
  readonly names: readonly string[]
  /** The name of Mooring's own issuer; that of an installation which has one already stays. */
  readonly issuerUrl: string
  readonly log: Pick<Logger, 'error'>
}

export interface KeptApiSecret extends Disposable {
  /** Where the API server takes entries of the audit log. A secret. */
  readonly auditPath: string
  /** What the audit log holds in place of a value that may be a secret. */
  readonly digest: ValueDigest
  /** Puts back what was deleted of the Secrets. A timer calls this. */
  check(): Promise<void>
}

/** Makes what the API server needs, or brings it up to date, and keeps it so until it is disposed of. */
export async function keepApiSecret(deps: ApiSecretDeps): Promise<KeptApiSecret> {
  const { store, ca, names, log } = deps
  const opened = await openIssuer(deps)
  const { issuer, privateKey } = Issuer.parse(JSON.parse(opened))
  const drawn = randomBytes(TOKEN_SECRET_BYTES).toString('hex')
  const kept = await keptSecret(store, API_SECRET, async () => ({ 'token-secret': drawn }))
  const held = kept['token-secret'] ?? ''
  // One that the API server cannot read would keep it from starting.
  const tokenSecret = TOKEN_SECRET.test(held) ? held : drawn
  const certificates = await createCertificates({
    ...{ ca, names, stored: storedIn(kept) },
    onError: (error) => log.error({ err: error }, 'the certificate of the API could not be renewed'),
  })
  const wanted = () => ({
    'token-secret': tokenSecret,
    'tls.crt': certificates.current().certificate,
    'tls.key': certificates.current().key,
    'ca.crt': ca.certificate,
    issuer,
    'jwks.json': JSON.stringify(publicKeySet(privateKey)),
  })

  async function keep(): Promise<void> {
    // Somebody may have deleted it: pods that run have its files still, new ones would wait for ever.
    await keptSecret(store, API_SECRET, async () => wanted())
    await keepSecret(store, API_SECRET, wanted())
  }

  async function check(): Promise<void> {
    await restoreSecret(store, API_SECRET, wanted())
    await restoreSecret(store, ISSUER_SECRET, { [ISSUER_ENTRY]: opened })
  }

  const tried = (work: Promise<void>) => {
    work.catch((error: unknown) => log.error({ err: error }, `the Secret ${API_SECRET} could not be kept up to date`))
  }
  await keep()
  certificates.onRenew(() => tried(keep()))
  const timer = setInterval(() => tried(check()), LOOK_MS).unref()
  return {
    auditPath: auditPath(Buffer.from(tokenSecret, 'hex')),
    digest: createValueDigest(Buffer.from(tokenSecret, 'hex')),
    check,
    [Symbol.dispose]() {
      clearInterval(timer)
      certificates[Symbol.dispose]()
    },
  }
}

/** The issuer keeps its first name and key for good: tokens outlive a change of address. */
async function openIssuer({ store, issuerUrl }: ApiSecretDeps): Promise<string> {
  const made = await keptSecret(store, ISSUER_SECRET, async () => ({
    [ISSUER_ENTRY]: JSON.stringify({ issuer: issuerUrl, privateKey: await generateIssuerKey() }),
  }))
  return made[ISSUER_ENTRY] ?? ''
}

function storedIn(kept: Readonly<Record<string, string>>): KeyPair | undefined {
  const { 'tls.crt': certificate, 'tls.key': key } = kept
  return certificate !== undefined && key !== undefined ? { certificate, key } : undefined
}
