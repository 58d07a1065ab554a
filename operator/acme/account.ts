import { createHash, createPublicKey } from 'node:crypto'
import { calculateJwkThumbprint } from 'jose'
import { z } from 'zod'
import { Secret } from '../../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import type { AcmeSettings } from '../../crds/tunnel-endpoint.ts'
import { MooringError } from '../../shared/errors.ts'
import type { Store } from '../../store/port.ts'
import { keepSecret, keptSecret } from '../installation/kept-secret.ts'
import { stepDone } from '../reporter.ts'
import { decodeSecret } from '../secret-data.ts'
import { type AccountKey, type AccountTexts, type ClientWith, createAccountKey } from './account-key.ts'
import { AcmeError } from './acme-error.ts'
import { type AcmeClient, createAcmeClient } from './client.ts'
import { newKey } from './order-state.ts'
import { createTransport } from './transport.ts'

/** Registered account at a CA. */
export interface Account {
  readonly client: AcmeClient
  /** URL of the account. */
  readonly url: string
}

/** Accounts at certificate authorities. The key of each is in a Secret of mooring-system; another directory means another account. */
export interface Accounts extends Disposable {
  /** Returns the thumbprint of the account's key (RFC 7638). Creates the key at the first call; sends nothing to the CA. */
  thumbprint(settings: AcmeSettings): Promise<string>
  /** Returns the version of the account's key: `accountKeyVersion` of the settings with which it was created. */
  keyVersion(settings: AcmeSettings): Promise<number>
  /**
   * Changes the key of the account when the settings ask for a higher version.
   * @throws AcmeError when the CA rejects the change or cannot be reached
   */
  changeKey(settings: AcmeSettings): Promise<void>
  /**
   * Returns the account; registers it at the first call.
   * @throws AcmeError when the CA rejects the account or cannot be reached
   * @throws MooringError `acme_account_unusable` when the Secret of the external account is not usable
   */
  open(settings: AcmeSettings): Promise<Account>
  /** Makes {@link open} register the account again, because the CA does not know it any more. */
  forget(settings: AcmeSettings): Promise<void>
  /** Returns the time until which the CA has asked to make no orders, in milliseconds since the epoch; 0 without such a request. */
  pausedUntil(settings: AcmeSettings): Promise<number>
  /** Stores that time. */
  pause(settings: AcmeSettings, until: number): Promise<void>
}

/** Name of the account's Secret. */
export function accountSecret({ directoryUrl, externalAccount }: AcmeSettings): string {
  const digest = createHash('sha256').update(JSON.stringify([directoryUrl, externalAccount?.keyId ?? '']))
  return `acme-account-${digest.digest('hex').slice(0, 16)}`
}

interface AccountsDeps {
  readonly store: Store
  readonly now: () => Date
  /** Called with the name of the Secret of an account that has got another key or URL. */
  readonly onChange: (account: string) => void
}

export function createAccounts({ store, now, onChange }: AccountsDeps): Accounts {
  /** Accounts by the settings that their clients depend on: when one of these changes, another client is created. */
  const clients = new Map<string, Promise<Opened>>()
  /** Keys of accounts by the name of the account's Secret. */
  const keys = new Map<string, AccountKey>()
  const cleanup = new DisposableStack()

  async function textsOf(settings: AcmeSettings): Promise<AccountTexts> {
    const make = async () => ({ ...EMPTY, key: newKey(), keyVersion: String(settings.accountKeyVersion) })
    return { ...EMPTY, ...(await keptSecret(store, accountSecret(settings), make)) }
  }

  function keyOf(settings: AcmeSettings): AccountKey {
    const name = accountSecret(settings)
    const read = () => textsOf(settings)
    const write = (texts: Partial<AccountTexts>) => keepSecret(store, name, { ...texts })
    const key = keys.get(name) ?? createAccountKey({ name, read, write, onChange: () => onChange(name) })
    keys.set(name, key)
    return key
  }

  async function register(settings: AcmeSettings): Promise<Opened> {
    using opened = new DisposableStack()
    const transport = opened.use(createTransport(settings.caBundle))
    const externalAccount = await externalAccountOf(settings)
    const clientWith = remembered((accountKey, accountUrl) =>
      createAcmeClient({ directoryUrl: settings.directoryUrl, accountKey, accountUrl, transport, now, externalAccount }),
    )
    const accountKey = keyOf(settings)
    const url = await accountKey.useAlone(clientWith, (key) => registered(settings, { key, clientWith }))
    cleanup.use(opened.move())
    const withClient = <T>(act: (client: AcmeClient) => Promise<T>): Promise<T> =>
      accountKey.use(clientWith, async (key) => act(await clientWith(key, url)))
    const client: AcmeClient = {
      directory: () => withClient((each) => each.directory()),
      register: (payload) => withClient((each) => each.register(payload)),
      changeKey: (account, key) => withClient((each) => each.changeKey(account, key)),
      post: (...about) => withClient((each) => each.post(...about)),
      get: (...about) => withClient((each) => each.get(...about)),
    }
    return { client, url, clientWith }
  }

  /** Registers the account, or changes its address for messages, unless that is done already. @returns the URL of the account */
  async function registered(settings: AcmeSettings, { key, clientWith }: Signing): Promise<string> {
    const { url, email } = await textsOf(settings)
    const wanted = settings.email ?? ''
    const contact = wanted === '' ? [] : [`mailto:${wanted}`]
    if (url !== '') {
      if (email === wanted) return url
      const client = await clientWith(key, url)
      await client.post(url, { contact }, z.unknown())
      await keepSecret(store, accountSecret(settings), { email: wanted })
      return url
    }
    const client = await clientWith(key, undefined)
    const { location = '' } = await client.register({ termsOfServiceAgreed: settings.agreeToTerms, contact })
    if (!URL.canParse(location))
      throw new AcmeError('acme_invalid_answer', 'the certificate authority names no URL of the account')
    stepDone('account.registered', accountSecret(settings))
    await keepSecret(store, accountSecret(settings), { url: location, email: wanted })
    onChange(accountSecret(settings))
    return location
  }

  async function open(settings: AcmeSettings): Promise<Opened> {
    const id = identityOf(settings)
    const account = clients.get(id) ?? register(settings)
    clients.set(id, account)
    try {
      return await account
    } catch (error) {
      if (clients.get(id) === account) clients.delete(id)
      throw error
    }
  }

  async function externalAccountOf({ externalAccount }: AcmeSettings) {
    if (!externalAccount) return undefined
    const { keyId, secretName } = externalAccount
    const secret = await store.get(Secret, { namespace: SYSTEM_NAMESPACE, name: secretName })
    const hmacKey = secret && decodeSecret(secret.data, 'hmac-key')?.trim()
    if (hmacKey === undefined || !/^[A-Za-z0-9_+/=-]+$/.test(hmacKey)) {
      const why = `the Secret ${secretName} of spec.acme.externalAccount has no entry hmac-key in base64url`
      throw new MooringError('acme_account_unusable', why)
    }
    return { keyId, hmacKey }
  }

  return {
    async thumbprint(settings) {
      const { key } = await textsOf(settings)
      return calculateJwkThumbprint(createPublicKey(key).export({ format: 'jwk' }))
    },
    async keyVersion(settings) {
      return Number((await textsOf(settings)).keyVersion)
    },
    open,
    async changeKey(settings) {
      const { keyVersion, nextKey } = await textsOf(settings)
      if (Number(keyVersion) >= settings.accountKeyVersion && nextKey === '') return
      const { clientWith } = await open(settings)
      await keyOf(settings).change(settings.accountKeyVersion, clientWith)
    },
    async forget(settings) {
      clients.delete(identityOf(settings))
      keyOf(settings).recheck()
      await textsOf(settings)
      await keepSecret(store, accountSecret(settings), { url: '' })
    },
    async pausedUntil(settings) {
      const { pausedUntil } = await textsOf(settings)
      return Number(pausedUntil) || 0
    },
    async pause(settings, until) {
      await textsOf(settings)
      await keepSecret(store, accountSecret(settings), { pausedUntil: String(until) })
    },
    [Symbol.dispose]: () => cleanup.dispose(),
  }
}

const EMPTY: AccountTexts = { key: '', keyVersion: '1', nextKey: '', nextVersion: '', url: '', email: '', pausedUntil: '0' }

interface Opened extends Account {
  readonly clientWith: ClientWith
}

interface Signing {
  readonly key: string
  readonly clientWith: ClientWith
}

/** Returns `create` with a memory of its last client, whose nonces and directory serve further requests. */
function remembered(create: ClientWith): ClientWith {
  let last: { readonly of: string; readonly client: Promise<AcmeClient> } | undefined
  return (key, url) => {
    const of = `${key} ${url ?? ''}`
    if (last?.of !== of) last = { of, client: create(key, url) }
    return last.client
  }
}

const identityOf = ({ directoryUrl, email, caBundle, externalAccount, agreeToTerms }: AcmeSettings): string =>
  JSON.stringify([directoryUrl, email, caBundle, externalAccount, agreeToTerms])
