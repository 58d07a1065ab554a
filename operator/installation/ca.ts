import type { Logger } from 'pino'
import { Secret } from '../../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import type { Store } from '../../store/port.ts'
import { createCa, isPair, type KeyPair } from '../certificates/local-ca.ts'
import { API_SECRET } from './api-secret.ts'
import { keepSecret, keptSecret, restoreSecret } from './kept-secret.ts'

/** Secret of the CA. Only the operator reads it. */
export const CA_SECRET = 'mooring-ca'

const POLL_MS = 10_000

/** Opens the CA of this installation, by which callers verify every server. A damaged one is replaced. */
export async function openCa(store: Store): Promise<KeyPair> {
  const { certificate = '', key = '' } = await keptSecret(store, CA_SECRET, async () => ({ ...(await createCa(new Date())) }))
  if (isPair({ certificate, key })) return { certificate, key }
  const made = await createCa(new Date())
  await keepSecret(store, CA_SECRET, { ...made })
  return made
}

export interface KeptCaDeps {
  readonly store: Store
  readonly log: Pick<Logger, 'warn' | 'error'>
  readonly everyMs?: number
}

export interface KeptCa extends Disposable {
  readonly current: KeyPair
  /** Restores the Secret when it was deleted or damaged. A timer calls this. */
  check(): Promise<void>
}

/**
 * Opens the CA ({@link openCa}) and keeps its Secret until it is disposed of. If the CA was lost while no operator ran, all certificates
 * are issued anew and callers need the new CA: this is logged as a warning.
 */
export async function keepCa({ store, log, everyMs = POLL_MS }: KeptCaDeps): Promise<KeptCa> {
  const current = await openCa(store)
  const before = (await store.get(Secret, { namespace: SYSTEM_NAMESPACE, name: API_SECRET }))?.data['ca.crt']
  if (before !== undefined && before !== Buffer.from(current.certificate).toString('base64'))
    log.warn(`the Secret ${CA_SECRET} was lost: all certificates are issued anew by a new CA, which callers must trust`)

  async function check(): Promise<void> {
    if (await restoreSecret(store, CA_SECRET, { ...current }))
      log.warn(`the Secret ${CA_SECRET} was deleted or damaged: restored`)
  }

  const timer = setInterval(() => {
    check().catch((error: unknown) => log.error({ err: error }, `the Secret ${CA_SECRET} could not be checked`))
  }, everyMs).unref()
  return { current, check, [Symbol.dispose]: () => clearInterval(timer) }
}
