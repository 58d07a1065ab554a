import { generateKeyPair, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import { labels } from '../../crds/names.ts'
import type { OwnerReference } from '../../crds/kind.ts'
import { HOST_KEY_TYPES, hostKeysSecret } from '../../shared/edge-objects.ts'
import type { Store } from '../../store/port.ts'
import { keepSecret, keptSecret } from '../installation/kept-secret.ts'
import { openSshPrivateKey, publicLineIn } from './openssh.ts'

/** Host keys of an endpoint. All its edges present the same keys permanently: SSH clients report a changed key as an attack. */
export interface HostKeys {
  /** Private keys in OpenSSH's format. */
  readonly privateKeys: readonly string[]
  /** Public keys as lines of OpenSSH's format, without a comment. */
  readonly publicKeys: readonly string[]
}

const RSA_BITS = 3_072
type Type = (typeof HOST_KEY_TYPES)[number]
const SSH_NAMES: Readonly<Record<Type, string>> = { ed25519: 'ssh-ed25519', ecdsa: 'ecdsa-sha2-nistp256', rsa: 'ssh-rsa' }
const pairOf = promisify(generateKeyPair)
const DRAW: Readonly<Record<Type, () => Promise<{ readonly privateKey: KeyObject }>>> = {
  ed25519: () => pairOf('ed25519', {}),
  ecdsa: () => pairOf('ec', { namedCurve: 'P-256' }),
  rsa: () => pairOf('rsa', { modulusLength: RSA_BITS }),
}

/** Private keys by type, public keys by `<type>.pub`. */
type Texts = Readonly<Record<string, string>>

/** Name of an endpoint and the owners of its Secret. */
export type HostKeysOf = { readonly name: string; readonly owners: readonly OwnerReference[] }

export interface HostKeyring {
  /**
   * Returns the endpoint's host keys and generates missing ones: Ed25519, ECDSA P-256, and RSA for old clients. Existing keys stay. Keys
   * that were deleted or damaged by hand are restored from the memory of this process, otherwise generated anew.
   */
  open(endpoint: HostKeysOf): Promise<HostKeys>
  /** Removes the keys of a deleted endpoint from memory. */
  forget(endpoint: string): void
}

export function createHostKeyring(store: Store): HostKeyring {
  const known = new Map<string, Texts>()
  return {
    async open({ name, owners }) {
      const before = known.get(name) ?? {}
      const about = { ownerReferences: owners, labels: { [labels.endpoint]: name } }
      const kept = await keptSecret(store, hostKeysSecret(name), () => whole([before]), about)
      const desired = await whole([kept, before])
      if (Object.entries(desired).some(([entry, value]) => kept[entry] !== value))
        await keepSecret(store, hostKeysSecret(name), desired)
      known.set(name, desired)
      return keysOf(desired)
    },
    forget: (endpoint) => void known.delete(endpoint),
  }
}

/** Opens the host keys before the endpoint exists. The reconcile of the endpoint later adds the owner to the Secret. */
export const openHostKeys = (store: Store, endpoint: string): Promise<HostKeys> =>
  createHostKeyring(store).open({ name: endpoint, owners: [] })

const keysOf = (kept: Texts): HostKeys => ({
  privateKeys: HOST_KEY_TYPES.map((type) => kept[type] ?? ''),
  publicKeys: HOST_KEY_TYPES.map((type) => kept[`${type}.pub`] ?? ''),
})

/** Returns a complete set of keys: of each type the first valid key in `from`, otherwise a new one. */
async function whole(from: readonly Texts[]): Promise<Texts> {
  const pairs = await Promise.all(
    HOST_KEY_TYPES.map(async (type) => {
      const key = from.map((texts) => texts[type] ?? '').find((text) => isOf(type, text)) ?? (await draw(type))
      return [
        [type, key],
        [`${type}.pub`, publicLineIn(key) ?? ''],
      ] as const
    }),
  )
  return Object.fromEntries(pairs.flat())
}

const isOf = (type: Type, file: string): boolean => publicLineIn(file)?.split(' ')[0] === SSH_NAMES[type]

async function draw(type: Type): Promise<string> {
  const { privateKey } = await DRAW[type]()
  return openSshPrivateKey(privateKey)
}
