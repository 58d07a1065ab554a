import { randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import { z } from 'zod'
import { calculateJwkThumbprint, exportJWK, generateKeyPair, type JSONWebKeySet, type JWK } from 'jose'
import { auditPath, createValueDigest, type ValueDigest } from '../../journal/audit-entry.ts'
import { createRestoreGrants, type RestoreGrants } from '../../shared/restore-grants.ts'
import { createWebhookSecrets, type WebhookSecrets } from '../../shared/webhook-secrets.ts'
import type { Store } from '../../store/port.ts'
import type { KeyPair } from '../certificates/local-ca.ts'
import { createCertificates } from '../certificates/renewing-certificate.ts'
import { keepSecret, keptSecret, restoreSecret } from './kept-secret.ts'

/** Secret of Mooring's own issuer with its private key: one entry, JSON. */
const ISSUER_SECRET = 'mooring-issuer'
const ISSUER_ENTRY = 'issuer'
/** Secret with all files that the API server needs, mounted as a volume. */
export const API_SECRET = 'mooring-apiserver'

const TOKEN_SECRET_BYTES = 32
const POLL_MS = 10_000
/** Format that the API server accepts. */
const TOKEN_SECRET = /^([0-9a-f]{2}){32,}$/

const Issuer = z.object({ issuer: z.string(), privateKey: z.looseObject({ kty: z.string() }) })

export interface ApiSecretDeps {
  readonly store: Store
  readonly ca: KeyPair
  /** Names and addresses of the API. */
  readonly names: readonly string[]
  /** Name of Mooring's own issuer. An existing installation keeps its issuer's name. */
  readonly issuerUrl: string
  readonly log: Pick<Logger, 'error'>
}

export interface KeptApiSecret extends Disposable {
  /** Path at which the API server accepts entries of the audit log. A secret. */
  readonly auditPath: string
  /** Digest that replaces a possibly secret value in the audit log. */
  readonly digest: ValueDigest
  readonly webhookSecrets: WebhookSecrets
  readonly restoreGrants: RestoreGrants
  /** Restores deleted entries of the Secrets. A timer calls this. */
  check(): Promise<void>
}

/** Creates or updates the Secrets that the API server needs, and keeps them until it is disposed of. */
export async function keepApiSecret(deps: ApiSecretDeps): Promise<KeptApiSecret> {
  const { store, ca, names, log } = deps
  const opened = await openIssuer(deps)
  const { issuer, privateKey } = Issuer.parse(JSON.parse(opened))
  const drawn = randomBytes(TOKEN_SECRET_BYTES).toString('hex')
  const kept = await keptSecret(store, API_SECRET, async () => ({ 'token-secret': drawn }))
  const held = kept['token-secret'] ?? ''
  // An invalid token secret would prevent the API server from starting.
  const tokenSecret = TOKEN_SECRET.test(held) ? held : drawn
  const certificates = await createCertificates({
    ca,
    names,
    stored: storedIn(kept),
    onError: (error) => log.error({ err: error }, 'the certificate of the API could not be renewed'),
  })
  const desired = () => ({
    'token-secret': tokenSecret,
    'tls.crt': certificates.current().certificate,
    'tls.key': certificates.current().key,
    'ca.crt': ca.certificate,
    issuer,
    'jwks.json': JSON.stringify(publicKeySet(privateKey)),
  })

  async function keep(): Promise<void> {
    // The Secret may have been deleted: running pods still have its files, new pods would wait for it.
    await keptSecret(store, API_SECRET, async () => desired())
    await keepSecret(store, API_SECRET, desired())
  }

  async function check(): Promise<void> {
    await restoreSecret(store, API_SECRET, desired())
    await restoreSecret(store, ISSUER_SECRET, { [ISSUER_ENTRY]: opened })
  }

  const tried = (work: Promise<void>) => {
    work.catch((error: unknown) => log.error({ err: error }, `the Secret ${API_SECRET} could not be updated`))
  }
  await keep()
  certificates.onRenew(() => tried(keep()))
  const timer = setInterval(() => tried(check()), POLL_MS).unref()
  return {
    auditPath: auditPath(Buffer.from(tokenSecret, 'hex')),
    digest: createValueDigest(Buffer.from(tokenSecret, 'hex')),
    webhookSecrets: createWebhookSecrets(Buffer.from(tokenSecret, 'hex')),
    restoreGrants: createRestoreGrants(Buffer.from(tokenSecret, 'hex')),
    check,
    [Symbol.dispose]() {
      clearInterval(timer)
      certificates[Symbol.dispose]()
    },
  }
}

/** Returns the issuer. Its first name and key stay permanently: tokens stay valid after a change of address. */
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

const ALGORITHM = 'EdDSA'

/** Generates a private Ed25519 key with its thumbprint as `kid`. The caller stores it as a secret. */
export async function generateIssuerKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair(ALGORITHM, { extractable: true })
  const jwk = await exportJWK(privateKey)
  return { ...jwk, kid: await calculateJwkThumbprint(jwk), alg: ALGORITHM, use: 'sig' }
}

/** Public half of a key of {@link generateIssuerKey}, for publication. */
export function publicKeySet({ kty, crv, x, kid, alg, use }: JWK): JSONWebKeySet {
  return { keys: [{ kty, crv, x, kid, alg, use } as JWK] }
}
