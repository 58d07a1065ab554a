import type { Store } from '../../store/port.ts'
import { createCa, type KeyPair } from '../certificates/local-ca.ts'
import { keptSecret } from './kept-secret.ts'

/** Only the operator reads it. */
export const CA_SECRET = 'mooring-ca'

/** The CA of this installation: its certificate is what callers check every server by. */
export async function openCa(store: Store): Promise<KeyPair> {
  const { certificate = '', key = '' } = await keptSecret(store, CA_SECRET, async () => ({ ...(await createCa(new Date())) }))
  return { certificate, key }
}
