import type { Registry } from 'prom-client'
import type { AcmeSettings, TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import type { KeyPair } from '../certificates/local-ca.ts'
import type { Cache } from '../../store/cache.ts'
import { keyOf, type Key, type Store } from '../../store/port.ts'
import type { Controller, ControllerDeps } from '../runtime/controller.ts'
import { aspectChangesOf, eventsOf, objectsOf, specOf } from '../runtime/source.ts'
import { accountSecret, createAccounts } from './account.ts'
import { createChallengeCheck } from './answers.ts'
import { createCertificateBudget } from './budget.ts'
import { createDnsRecords } from './dns/records.ts'
import { createAcmeMetrics } from './metrics.ts'
import { createOrderStore, issuedPair, type StoredOrder } from './order-state.ts'
import { createOrderRunner, type OrderRequest } from './orders.ts'
import { createRecordInspector } from './dns/record-inspection.ts'
import { createRecordWatch, type RecordState } from './dns/record-watch.ts'
import { revoke } from './revocation.ts'
import { createRenewalInfos, type Followed } from './renewal-info.ts'

export interface AcmeDeps {
  readonly store: Store
  readonly endpoints: Cache<typeof TunnelEndpoint>
  readonly registry: Registry
  readonly now: () => Date
  /** Random number from 0 to 1. */
  readonly random?: () => number
}

/** State of an order as the reconciler of tunnels needs it. */
export interface Progress {
  readonly state: 'pending' | 'obtaining' | 'failed' | 'issued'
  /** Token of the challenge that the edges answer; undefined for a wildcard certificate, whose challenge DNS answers. */
  readonly token: string | undefined
  readonly lastError: string | undefined
  /** Time of the next attempt, in milliseconds since the epoch. */
  readonly nextAttemptAt: number | undefined
  /** Issued certificate. */
  readonly pair: KeyPair | undefined
  readonly directory: string
}

/**
 * Orders of certificates by ACME (docs/certificates.md). An issued certificate is stored in the Secret of its order. The reconciler of tunnels
 * installs it from there, and writes the token for the edges and the progress for users to the status of the Tunnel.
 */
export interface Acme extends Disposable {
  /** Returns the progress of the order for a certificate; undefined without an order. `certificate` is the name of the certificate's Secret. */
  progress(certificate: string): Promise<Progress | undefined>
  /** Requests that the order for a certificate begins or continues. Returns at once; the controller does the work. */
  request(request: OrderRequest): void
  /** Deletes the order, because its certificate is installed or no longer needed. */
  forget(certificate: string): Promise<void>
  /** Polls the CA's renewal information of a certificate from now on. */
  follow(namespace: string, followed: Followed): void
  /** Returns the time at which the CA suggests to renew a certificate, in milliseconds since the epoch. `id`: see RFC 9773, section 4.1. */
  renewAt(id: string): number | undefined
  /** Returns the thumbprint of the account's key, with which edges answer challenges. */
  thumbprint(settings: AcmeSettings): Promise<string>
  /**
   * Revokes a certificate (PEM), because its name is not in use any more (RFC 8555, section 7.6). A revoked certificate is left alone.
   * @throws AcmeError when the CA rejects the revocation or cannot be reached
   * @throws MooringError `acme_account_unusable` when the Secret of the external account is not usable
   */
  revoke(settings: AcmeSettings, certificate: string): Promise<void>
  /** Returns the version of the account's key. */
  accountKeyVersion(settings: AcmeSettings): Promise<number>
  /** Returns the state of an endpoint's record; undefined before the first check, and for other challenges than dns-persist-01. */
  recordState(endpoint: TunnelEndpoint): RecordState | undefined
  /** Calls `listener` with the name of each endpoint whose account gets another key or URL, or whose record has another state. */
  onEndpoint(listener: (endpoint: string) => void): () => void
  /** Calls `listener` with the name of a certificate's Secret when its order or its renewal information changes. */
  onChange(listener: (certificate: string) => void): () => void
  /** `onFailure` receives failures that concern an endpoint. */
  controllers(
    controller: (about: Pick<ControllerDeps, 'name' | 'concurrency' | 'reconcile' | 'sources' | 'onFailure'>) => Controller,
    onFailure: ControllerDeps['onFailure'],
  ): readonly Controller[]
}

/** Maximum number of orders in progress at once. Most of the time they wait for the CA. */
const ORDERS = 16
const POLLS = 2
/** Maximum number of persistent records that are checked at once. Most of the time a check waits for DNS. */
const RECORDS = 4

export function createAcme(deps: AcmeDeps): Acme {
  const { store, endpoints, now, random = Math.random } = deps
  const endpointListeners = new Set<(endpoint: string) => void>()
  const notifyEndpoint = (name: string) => {
    for (const listener of endpointListeners) listener(name)
  }
  /** Notifies listeners of each endpoint with the account. */
  function accountChanged(account: string): void {
    for (const { metadata, spec } of endpoints.list()) {
      if (spec.issuer !== 'acme' || !spec.acme || accountSecret(spec.acme) !== account) continue
      notifyEndpoint(metadata.name)
      for (const enqueue of queues.records) enqueue({ name: metadata.name })
    }
  }
  const accounts = createAccounts({ store, now, onChange: accountChanged })
  const budget = createCertificateBudget({ store, now })
  const orders = createOrderStore(store)
  const requests = new Map<string, OrderRequest>()
  /** Certificates whose next attempt begins at once. */
  const hurried = new Set<string>()
  const followed = new Map<string, Followed>()
  const listeners = new Set<(certificate: string) => void>()
  const notify = (certificate: string) => {
    for (const listener of listeners) listener(certificate)
  }
  const dns = createDnsRecords({ store, orders, now })
  /** Last announced progress of wildcard certificates. */
  const announced = new Map<string, string>()
  /**
   * Notifies listeners of a step. A step of a wildcard certificate reconciles all tunnels of its endpoint, so a step without a visible change is
   * skipped.
   */
  function stepped(certificate: string, order: StoredOrder): void {
    dns.recheck()
    if (isWildcard(order)) {
      const text = JSON.stringify({ ...progressOf(order, now().getTime()), pair: undefined })
      if (announced.get(certificate) === text) return
      announced.set(certificate, text)
    }
    notify(certificate)
  }
  const { orderDone } = createAcmeMetrics({ registry: deps.registry, endpoints, left: (...args) => budget.left(...args) })
  const infos = createRenewalInfos({ accounts, onChange: notify })
  /** Returns the request while its endpoint uses ACME and certificates of that kind (wildcard or not), else undefined. */
  const wanted = (request: OrderRequest | undefined): OrderRequest | undefined => {
    const spec = request && endpoints.list().find(({ metadata }) => metadata.name === request.endpoint)?.spec
    const isWanted = spec?.issuer === 'acme' && (spec.certificates === 'wildcard') === request?.identifier.startsWith('*.')
    return isWanted ? request : undefined
  }
  const inspectRecord = createRecordInspector({ accounts, now })
  const records = createRecordWatch({
    endpoints,
    random,
    inspect: inspectRecord,
    onChange(endpoint, isFound) {
      notifyEndpoint(endpoint)
      if (isFound) hurryAt(endpoint)
    },
  })
  const runOrder = createOrderRunner({
    orders,
    accounts,
    budget,
    now,
    random,
    hurried,
    onResult: orderDone,
    isAnswered: createChallengeCheck({ accounts, dns, inspectRecord, now }),
    requestOf: (certificate) => wanted(requests.get(certificate)),
    onChange: stepped,
  })
  const queues = {
    orders: new Set<(key: Key) => void>(),
    polls: new Set<(key: Key) => void>(),
    records: new Set<(key: Key) => void>(),
  }
  const sourceOf = (queue: Set<(key: Key) => void>) =>
    eventsOf((enqueue) => {
      queue.add(enqueue)
      return () => void queue.delete(enqueue)
    })

  function enqueueOrder({ namespace, certificate }: OrderRequest): void {
    for (const enqueue of queues.orders) enqueue({ namespace, name: certificate })
  }

  /** Begins the next attempt of all orders of an endpoint at once. */
  function hurryAt(endpoint: string): void {
    for (const request of requests.values()) {
      if (request.endpoint !== endpoint) continue
      hurried.add(request.certificate)
      enqueueOrder(request)
    }
  }

  return {
    async progress(certificate) {
      const stored = await orders.read(certificate)
      return stored && progressOf(stored, now().getTime())
    },
    request(request) {
      const before = requests.get(request.certificate)
      requests.set(request.certificate, request)
      const isChanged = JSON.stringify(before?.settings) !== JSON.stringify(request.settings)
      if (before && !isChanged) return
      // A change of the settings may repair what failed, so the next attempt begins at once.
      if (before) hurried.add(request.certificate)
      enqueueOrder(request)
    },
    async forget(certificate) {
      requests.delete(certificate)
      hurried.delete(certificate)
      const { id } = followed.get(certificate) ?? {}
      followed.delete(certificate)
      if (id !== undefined) infos.forget(id)
      announced.delete(certificate)
      await orders.remove(certificate)
      dns.recheck()
    },
    follow(namespace, each) {
      const before = followed.get(each.certificate)
      followed.set(each.certificate, each)
      if (before?.id === each.id) return
      if (before) infos.forget(before.id)
      for (const enqueue of queues.polls) enqueue({ namespace, name: each.certificate })
    },
    renewAt: (id) => infos.renewAt(id),
    thumbprint: (settings) => accounts.thumbprint(settings),
    revoke: async (settings, certificate) => revoke(await accounts.open(settings), certificate),
    accountKeyVersion: (settings) => accounts.keyVersion(settings),
    recordState: (endpoint) => records.stateOf(endpoint),
    onEndpoint(listener) {
      endpointListeners.add(listener)
      return () => void endpointListeners.delete(listener)
    },
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    controllers: (controller, onFailure) => [
      controller({ name: 'certificate-order', concurrency: ORDERS, reconcile: runOrder, sources: [sourceOf(queues.orders)] }),
      controller({
        name: 'certificate-renewal-info',
        concurrency: POLLS,
        async reconcile({ name }) {
          const each = followed.get(name)
          return each ? infos.poll(each) : { result: 'settled', reason: 'NotFollowed' }
        },
        sources: [sourceOf(queues.polls)],
      }),
      controller({
        name: 'acme-account-key',
        concurrency: 1,
        onFailure,
        async reconcile(key) {
          const { spec, metadata } = endpoints.get(key) ?? {}
          const isUsed = spec?.issuer === 'acme' && metadata?.deletionTimestamp === undefined
          if (!isUsed || !spec.acme?.agreeToTerms) return { result: 'settled', reason: 'NoAccount' }
          await accounts.changeKey(spec.acme)
          return { result: 'settled', reason: 'AccountKeyCurrent' }
        },
        sources: [objectsOf(endpoints)],
      }),
      controller({
        name: 'acme-persistent-record',
        concurrency: RECORDS,
        onFailure,
        reconcile: (key) => records.reconcile(key),
        sources: [
          { ...aspectChangesOf(endpoints, specOf, (key) => [key]), initial: () => endpoints.list().map(keyOf) },
          sourceOf(queues.records),
        ],
      }),
      controller({ name: 'certificate-dns-record', concurrency: 1, reconcile: () => dns.reconcile(), sources: [dns.source] }),
    ],
    [Symbol.dispose]: () => accounts[Symbol.dispose](),
  }
}

const isWildcard = ({ state }: StoredOrder): boolean => state.identifier.startsWith('*.')

function progressOf(stored: StoredOrder, now: number): Progress {
  const { state } = stored
  const pair = issuedPair(stored)
  const isWaiting = state.next !== undefined && state.next.at > now
  const name = pair ? 'issued' : !isWaiting ? 'obtaining' : state.waits ? 'pending' : 'failed'
  return {
    state: name,
    // Edges do not answer the challenges of wildcard certificates.
    token: pair || isWildcard(stored) ? undefined : state.token,
    lastError: state.lastError,
    nextAttemptAt: isWaiting ? state.next?.at : undefined,
    pair,
    directory: state.directory,
  }
}
