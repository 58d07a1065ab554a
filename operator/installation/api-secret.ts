import { randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import { z } from 'zod'
import { Secret } from '../../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import type { Store } from '../../store/port.ts'
import type { KeyPair } from '../certificates/local-ca.ts'
import { createCertificates } from '../certificates/renewing.ts'
import { generateIssuerKey, publicKeySet } from './issuer-key.ts'
import { keepSecret, keptSecret } from './kept-secret.ts'

/** Mooring's own issuer with its private key: one entry, JSON. */
export const ISSUER_SECRET = 'mooring-issuer'
export const ISSUER_ENTRY = 'issuer'
/** All that the API server needs to have, as files of a volume. */
export const API_SECRET = 'mooring-apiserver'

const TOKEN_SECRET_BYTES = 32
const LOOK_MS = 60_000

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

/** Makes what the API server needs, or brings it up to date, and keeps it so until it is disposed of. */
export async function keepApiSecret(deps: ApiSecretDeps): Promise<Disposable> {
  const { store, ca, names, log } = deps
  const { issuer, privateKey } = await openIssuer(deps)
  const kept = await keptSecret(store, API_SECRET, async () => ({
    'token-secret': randomBytes(TOKEN_SECRET_BYTES).toString('hex'),
  }))
  const certificates = await createCertificates({
    ...{ ca, names, stored: storedIn(kept) },
    onError: (error) => log.error({ err: error }, 'the certificate of the API could not be renewed'),
  })
  const wanted = () => ({
    'token-secret': kept['token-secret'] ?? '',
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

  async function restore(): Promise<void> {
    if (!(await store.get(Secret, { namespace: SYSTEM_NAMESPACE, name: API_SECRET }))) await keep()
  }

  const tried = (work: Promise<void>) => {
    work.catch((error: unknown) => log.error({ err: error }, `the Secret ${API_SECRET} could not be kept up to date`))
  }
  await keep()
  certificates.onRenew(() => tried(keep()))
  const timer = setInterval(() => tried(restore()), LOOK_MS).unref()
  return {
    [Symbol.dispose]() {
      clearInterval(timer)
      certificates[Symbol.dispose]()
    },
  }
}

/** The issuer keeps its first name and key for good: tokens outlive a change of address. */
async function openIssuer({ store, issuerUrl }: ApiSecretDeps): Promise<z.output<typeof Issuer>> {
  const made = await keptSecret(store, ISSUER_SECRET, async () => ({
    [ISSUER_ENTRY]: JSON.stringify({ issuer: issuerUrl, privateKey: await generateIssuerKey() }),
  }))
  return Issuer.parse(JSON.parse(made[ISSUER_ENTRY] ?? ''))
}

function storedIn(kept: Readonly<Record<string, string>>): KeyPair | undefined {
  const { 'tls.crt': certificate, 'tls.key': key } = kept
  return certificate !== undefined && key !== undefined ? { certificate, key } : undefined
}
