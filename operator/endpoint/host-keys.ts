import { generateKeyPair } from 'node:crypto'
import { promisify } from 'node:util'
import { labels } from '../../crds/names.ts'
import type { OwnerReference } from '../../crds/kind.ts'
import type { Store } from '../../store/port.ts'
import { keepSecret, keptSecret } from '../installation/kept-secret.ts'
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
const ENTRIES = TYPES.flatMap((type) => [type, `${type}.pub`])
const draw = promisify(generateKeyPair)

export const hostKeysName = (endpoint: string): string => `endpoint-${endpoint}-host-keys`

type Texts = Readonly<Record<string, string>>

/** The endpoint's host keys, drawn the first time: Ed25519, ECDSA P-256, and RSA for old clients. */
export async function openHostKeys(store: Store, endpoint: string): Promise<HostKeys> {
  return keysOf(await keptSecret(store, hostKeysName(endpoint), generate))
}

/** Owner of the Secret, which goes with it. */
export type HostKeysOf = { readonly name: string; readonly owners: readonly OwnerReference[] }

/** {@link openHostKeys}, of the same keys again when somebody has deleted or damaged the Secret meanwhile: clients know them. */
export function createHostKeyring(store: Store): (endpoint: HostKeysOf) => Promise<HostKeys> {
  const known = new Map<string, Texts>()
  return async function open({ name, owners }) {
    const before = known.get(name)
    const about = { ownerReferences: owners, labels: { [labels.endpoint]: name } }
    const kept = await keptSecret(store, hostKeysName(name), async () => before ?? generate(), about)
    if (ENTRIES.every((entry) => (kept[entry] ?? '') !== '')) {
      known.set(name, kept)
      return keysOf(kept)
    }
    const whole = before ?? (await generate())
    await keepSecret(store, hostKeysName(name), whole)
    return keysOf(whole)
  }
}

const keysOf = (kept: Texts): HostKeys => ({
  privateKeys: TYPES.map((type) => kept[type] ?? ''),
  publicKeys: TYPES.map((type) => kept[`${type}.pub`] ?? ''),
})

async function generate(): Promise<Texts> {
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
