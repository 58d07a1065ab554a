import { stepDone } from '../reporter.ts'
import { AcmeError } from './acme-error.ts'
import type { AcmeClient } from './client.ts'
import { newKey } from './order-state.ts'

/** Texts of an account's Secret. */
export interface AccountTexts {
  /** Private key of the account, PEM. */
  readonly key: string
  /** `accountKeyVersion` of that key. */
  readonly keyVersion: string
  /** Key that may have replaced `key`, PEM; empty while no change is under way. */
  readonly nextKey: string
  /** `accountKeyVersion` of the next key. */
  readonly nextVersion: string
  /** URL of the account; empty before the registration. */
  readonly url: string
  readonly email: string
  /** Time until which the CA has asked to make no orders, in milliseconds since the epoch. */
  readonly pausedUntil: string
}

/** Creates a client that signs with a key; `url` is that of the account. */
export type ClientWith = (key: string, url: string | undefined) => Promise<AcmeClient>

/**
 * Key of an account at a CA, and its change (RFC 8555, section 7.3.5).
 *
 *     key ──next key stored beside it──► request ──CA accepts──► next key is the key
 *
 * When the process or the connection ends in between, either key may be the account's. The operator then asks the CA whether it knows the
 * next key.
 */
export interface AccountKey {
  /**
   * Runs `act` with the key that the CA knows. Waits while the key changes.
   * @throws AcmeError when it is unknown which key that is, and the CA does not answer
   */
  use<T>(clientWith: ClientWith, act: (key: string) => Promise<T>): Promise<T>
  /** Runs `act` like {@link use}, while no other request of the account is under way. */
  useAlone<T>(clientWith: ClientWith, act: (key: string) => Promise<T>): Promise<T>
  /**
   * Changes the key of a registered account unless it has this version or a higher one.
   * @throws AcmeError when the CA rejects the change or cannot be reached
   */
  change(version: number, clientWith: ClientWith): Promise<void>
  /** Makes the next request read the key from the Secret again. */
  recheck(): void
}

interface AccountKeyDeps {
  /** Name of the account's Secret. */
  readonly name: string
  readonly read: () => Promise<AccountTexts>
  readonly write: (texts: Partial<AccountTexts>) => Promise<void>
  /** Called after another key was stored as the account's. */
  readonly onChange: () => void
}

export function createAccountKey({ name, read, write, onChange }: AccountKeyDeps): AccountKey {
  const { shared, alone } = createGate()
  /** Key that the CA knows; undefined before the Secret was read, and after a change whose result is unknown. */
  let known: string | undefined

  async function settled(clientWith: ClientWith): Promise<string> {
    if (known !== undefined) return known
    const { key, nextKey, nextVersion } = await read()
    if (nextKey === '' || !(await isRegistered(await clientWith(nextKey, undefined)))) return (known = key)
    await adopt(nextKey, nextVersion)
    return nextKey
  }

  async function adopt(key: string, keyVersion: string): Promise<void> {
    await write({ key, keyVersion, nextKey: '', nextVersion: '' })
    known = key
    onChange()
    stepDone('account.key-adopted', name)
  }

  async function changed(version: number, clientWith: ClientWith): Promise<void> {
    const key = await settled(clientWith)
    const { keyVersion, nextKey, url } = await read()
    if (Number(keyVersion) >= version) return
    // The next key of an earlier attempt is used again, even when that attempt failed: the CA may have accepted it late.
    const next = nextKey === '' ? newKey() : nextKey
    await write({ nextKey: next, nextVersion: String(version) })
    stepDone('account.key-stored', name)
    known = undefined
    const client = await clientWith(key, url)
    await client.changeKey(url, next)
    stepDone('account.key-changed', name)
    await adopt(next, String(version))
  }

  return {
    async use(clientWith, act) {
      for (;;) {
        const key = known ?? (await alone(() => settled(clientWith)))
        // The key may have changed while this request waited.
        const done = await shared(async () => (key === known ? { value: await act(key) } : undefined))
        if (done) return done.value
      }
    },
    useAlone: (clientWith, act) => alone(async () => act(await settled(clientWith))),
    change: (version, clientWith) => alone(() => changed(version, clientWith)),
    recheck: () => void (known = undefined),
  }
}

/** Whether the CA has an account with the client's key (RFC 8555, section 7.3.1). */
async function isRegistered(client: AcmeClient): Promise<boolean> {
  try {
    await client.register({ onlyReturnExisting: true })
    return true
  } catch (error) {
    if (error instanceof AcmeError && error.type === 'accountDoesNotExist') return false
    throw error
  }
}

/** Gate of requests: many at a time with `shared`, one and no other with `alone`. Neither may be nested in the other. */
function createGate() {
  const active = new Set<Promise<unknown>>()
  let exclusive: Promise<undefined> | undefined

  async function shared<T>(act: () => Promise<T>): Promise<T> {
    while (exclusive) await exclusive
    const running = act()
    active.add(running)
    try {
      return await running
    } finally {
      active.delete(running)
    }
  }

  async function alone<T>(act: () => Promise<T>): Promise<T> {
    while (exclusive) await exclusive
    const { promise, resolve } = Promise.withResolvers<undefined>()
    exclusive = promise
    try {
      await Promise.allSettled([...active])
      return await act()
    } finally {
      exclusive = undefined
      resolve(undefined)
    }
  }

  return { shared, alone }
}
