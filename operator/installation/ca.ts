import type { Logger } from 'pino'
import { Secret } from '../../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import type { Store } from '../../store/port.ts'
import { createCa, isPair, type KeyPair } from '../certificates/local-ca.ts'
import { API_SECRET } from './api-secret.ts'
import { keepSecret, keptSecret, restoreSecret } from './kept-secret.ts'

/** Only the operator reads it. */
export const CA_SECRET = 'mooring-ca'

const LOOK_MS = 10_000

/** The CA of this installation: its certificate is what callers check every server by. One that is damaged is replaced. */
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
  /** Puts the Secret back when it was deleted or damaged. A timer calls this. */
  check(): Promise<void>
}

/**
 * {@link openCa}, and keeps it until it is disposed of. With a CA that was lost while no operator ran, every certificate is issued anew, and
 * callers have to fetch the new one: that is told loudly.
 */
export async function keepCa({ store, log, everyMs = LOOK_MS }: KeptCaDeps): Promise<KeptCa> {
  const current = await openCa(store)
  const before = (await store.get(Secret, { namespace: SYSTEM_NAMESPACE, name: API_SECRET }))?.data['ca.crt']
  if (before !== undefined && before !== Buffer.from(current.certificate).toString('base64'))
    log.warn(`the Secret ${CA_SECRET} was lost: all certificates are issued anew by another CA, which callers have to be given`)

  async function check(): Promise<void> {
    if (await restoreSecret(store, CA_SECRET, { ...current })) log.warn(`the Secret ${CA_SECRET} was gone: it is put back`)
  }

  const timer = setInterval(() => {
    check().catch((error: unknown) => log.error({ err: error }, `the Secret ${CA_SECRET} could not be looked at`))
  }, everyMs).unref()
  return { current, check, [Symbol.dispose]: () => clearInterval(timer) }
}
