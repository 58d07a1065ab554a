import { generateKeyPair, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import { Secret } from '../../crds/core.ts'
import { labels, SYSTEM_NAMESPACE } from '../../crds/names.ts'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { formerHostKeysSecret, HOST_KEY_TYPES, hostKeysSecret } from '../../shared/edge-objects.ts'
import type { Store } from '../../store/port.ts'
import { keepSecret, keptSecret } from '../installation/kept-secret.ts'
import { decodeSecret } from '../secret-data.ts'
import { openSshPrivateKey, publicLineIn } from './openssh.ts'

/**
 * Host keys of a domain. All edges of all its endpoints, one after the other, present the same keys: SSH clients report a changed key as
 * an attack.
 */
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

/** Endpoint whose host keys are opened. */
export interface HostKeysOf {
  readonly name: string
  readonly domain: string
  /** Uid of the endpoint; undefined before it exists. */
  readonly uid?: string | undefined
}

/** Returns what {@link HostKeyring} needs of an endpoint. */
export const hostKeysOf = ({ metadata: { name, uid }, spec: { domain } }: TunnelEndpoint): HostKeysOf => ({ name, domain, uid })

export interface HostKeyring {
  /**
   * Returns the host keys of an endpoint's domain and generates missing ones: Ed25519, ECDSA P-256, and RSA for old clients. Existing keys
   * stay, also those of an earlier endpoint of the domain. Keys that were deleted or damaged by hand are restored from the memory of this
   * process, otherwise generated anew.
   */
  open(endpoint: HostKeysOf): Promise<HostKeys>
  /** Removes the keys of a deleted endpoint from memory. Their Secret stays. */
  forget(endpoint: string): void
}

const ABOUT = { labels: { [labels.hostKeys]: 'true' } }

export function createHostKeyring(store: Store): HostKeyring {
  const known = new Map<string, { readonly domain: string; readonly texts: Texts }>()

  /** Returns the keys that an earlier version kept for this endpoint, in a Secret that Kubernetes deletes with it. */
  async function formerKeys({ name, uid }: HostKeysOf): Promise<Texts> {
    const found = await store.get(Secret, { namespace: SYSTEM_NAMESPACE, name: formerHostKeysSecret(name) })
    const owners = found?.metadata.ownerReferences ?? []
    // The Secret of an earlier endpoint of the name, which may have had another domain, is about to be deleted.
    if (!found || (uid !== undefined && owners.length > 0 && !owners.some((owner) => owner.uid === uid))) return {}
    return Object.fromEntries(HOST_KEY_TYPES.map((type) => [type, decodeSecret(found.data, type) ?? '']))
  }

  return {
    async open(endpoint) {
      const { name, domain } = endpoint
      const last = known.get(name)
      const before = last?.domain === domain ? last.texts : {}
      const secret = hostKeysSecret(domain)
      const kept = await keptSecret(store, secret, async () => whole([before, await formerKeys(endpoint)]), ABOUT)
      const desired = await whole([kept, before])
      if (Object.entries(desired).some(([entry, value]) => kept[entry] !== value)) await keepSecret(store, secret, desired)
      known.set(name, { domain, texts: desired })
      return keysOf(desired)
    },
    forget: (endpoint) => void known.delete(endpoint),
  }
}

/** Opens the host keys before the endpoint exists. */
export const openHostKeys = (store: Store, endpoint: HostKeysOf): Promise<HostKeys> => createHostKeyring(store).open(endpoint)

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
