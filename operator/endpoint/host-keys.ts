import { generateKeyPair } from 'node:crypto'
import { promisify } from 'node:util'
import type { Store } from '../../store/port.ts'
import { keptSecret } from '../installation/kept-secret.ts'
import { openSshPrivateKey, publicLine } from './openssh.ts'

/** Host keys of an endpoint's edges: all show the same, for ever, or clients are warned of an attack. */
export interface HostKeys {
  /** In OpenSSH's format. */
  readonly privateKeys: readonly string[]
  /** As OpenSSH writes them, without a comment. */
  readonly publicKeys: readonly string[]
}

const RSA_BITS = 3_072
const TYPES = ['ed25519', 'ecdsa', 'rsa'] as const
const draw = promisify(generateKeyPair)

export const hostKeysName = (endpoint: string): string => `endpoint-${endpoint}-host-keys`

/** The endpoint's host keys, drawn the first time: Ed25519, ECDSA P-256, and RSA for old clients. */
export async function openHostKeys(store: Store, endpoint: string): Promise<HostKeys> {
  const kept = await keptSecret(store, hostKeysName(endpoint), generate)
  return {
    privateKeys: TYPES.map((type) => kept[type] ?? ''),
    publicKeys: TYPES.map((type) => kept[`${type}.pub`] ?? ''),
  }
}

async function generate(): Promise<Record<string, string>> {
  const [ed25519, ecdsa, rsa] = await Promise.all([
    draw('ed25519', {}),
    draw('ec', { namedCurve: 'P-256' }),
    draw('rsa', { modulusLength: RSA_BITS }),
  ])
  return Object.fromEntries(
    Object.entries({ ed25519, ecdsa, rsa }).flatMap(([type, { privateKey }]) => [
      [type, openSshPrivateKey(privateKey)],
      [`${type}.pub`, publicLine(privateKey)],
    ]),
  )
}
