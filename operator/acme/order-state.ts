import { generateKeyPairSync } from 'node:crypto'
import { z } from 'zod'
import { Secret } from '../../crds/core.ts'
import { labels, SYSTEM_NAMESPACE } from '../../crds/names.ts'
import type { KeyPair } from '../certificates/local-ca.ts'
import { Problem } from './acme-error.ts'
import { ignoringGone, isStoreError, type Store } from '../../store/port.ts'
import { decodeSecret, encodeSecret } from '../secret-data.ts'

/** Order of a CA (RFC 8555, section 7.1.3). */
export const Order = z.object({
  status: z.enum(['pending', 'ready', 'processing', 'valid', 'invalid']),
  identifiers: z.array(z.object({ type: z.string(), value: z.string() })),
  authorizations: z.array(z.string()).min(1),
  finalize: z.string(),
  certificate: z.string().optional(),
  error: Problem.optional(),
})
export type Order = z.output<typeof Order>

/** Token of a challenge: base64url (RFC 8555, section 8.1). */
export const Token = z.string().regex(/^[A-Za-z0-9_-]{1,200}$/)

/**
 * State of an order, which outlives the operator.
 *
 *     check ──edges or DNS answer a random token──► order ──URL known──► validate ──validated, certificate issued──► issued
 *       ▲                                             │                     │
 *       └───── the CA rejects, or the order is lost ◄─┴─────────────────────┘
 */
export const OrderState = z.object({
  phase: z.enum(['check', 'order', 'validate', 'issued']),
  /** Directory of the CA. When the settings name another directory, another order replaces this one. */
  directory: z.string(),
  /** Domain name of the certificate. */
  identifier: z.string(),
  /** Token that the edges or DNS answer: a random one for the check, later that of the challenge. */
  token: Token,
  /** URL of the order at the CA; undefined before the phase `validate`. */
  url: z.string().optional(),
  /** Challenge of the order. `answered`: the operator has asked the CA to validate it. */
  challenge: z
    .object({
      url: z.string(),
      answered: z.boolean(),
      /** Number of further answers after failed validations, and the time of the next one in milliseconds since the epoch. */
      repeats: z.int().optional(),
      repeatAt: z.number().optional(),
    })
    .optional(),
  /** Identifier of the certificate that the order replaces. */
  replaces: z.string().optional(),
  /** Whether the certificate is counted in the budget already, or exempt from it as a renewal. */
  counted: z.boolean().default(false),
  /** Consecutive failures. */
  failures: z.int().min(0).default(0),
  /** Consecutive failures of the operator's own check, and the last of them. They delay an order and do not prevent it. */
  checks: z.int().min(0).default(0),
  checkError: z.string().optional(),
  /** Times of the orders that were made within the last hour, in milliseconds since the epoch. */
  placed: z.array(z.number()).default([]),
  lastError: z.string().optional(),
  /** Whether the order waits for the budget or for the account, without having failed. */
  waits: z.boolean().default(false),
  /** Time of the next attempt, in milliseconds since the epoch, and the wait for it. If more than `waitMs` remains, the clock was set back. */
  next: z.object({ at: z.number(), waitMs: z.number() }).optional(),
  /** Time at which the phase began, in milliseconds since the epoch. */
  since: z.number(),
})
export type OrderState = z.output<typeof OrderState>

/** Order with the key of its certificate, and the certificate once it is issued. */
export interface StoredOrder {
  readonly state: OrderState
  /** Private key of the certificate, PEM. */
  readonly key: string
  /** Certificate chain, PEM. */
  readonly certificate: string | undefined
}

/** Secrets of orders, in mooring-system. */
export interface OrderStore {
  read(certificate: string): Promise<StoredOrder | undefined>
  /** Creates the order, with a new key. Replaces an existing order. */
  create(certificate: string, state: OrderState, endpoint: string): Promise<StoredOrder>
  /** Writes an existing order and returns it. Returns undefined when the order was deleted. */
  write(certificate: string, order: StoredOrder): Promise<StoredOrder | undefined>
  remove(certificate: string): Promise<void>
}

/** Returns the name of the Secret of an order, given the name of the certificate's Secret. Edges may not read Secrets with such a name. */
export const orderSecret = (certificate: string): string => `acme-${certificate.replace(/-certificate$/, '')}-order`

const keyOf = (certificate: string) => ({ namespace: SYSTEM_NAMESPACE, name: orderSecret(certificate) })

export function createOrderStore(store: Pick<Store, 'get' | 'create' | 'mergePatch' | 'delete'>): OrderStore {
  async function write(certificate: string, order: StoredOrder): Promise<StoredOrder | undefined> {
    try {
      await store.mergePatch(Secret, keyOf(certificate), { data: dataOf(order) })
      return order
    } catch (error) {
      if (!isStoreError(error, 'not_found')) throw error
      return undefined
    }
  }

  return {
    async read(certificate) {
      const secret = await store.get(Secret, keyOf(certificate))
      return secret && storedIn(secret)
    },
    async create(certificate, state, endpoint) {
      const order = { state, key: newKey(), certificate: undefined }
      const metadata = { ...keyOf(certificate), labels: { [labels.managedBy]: 'mooring', [labels.endpoint]: endpoint } }
      try {
        await store.create(Secret, { metadata, data: dataOf(order) })
      } catch (error) {
        if (!isStoreError(error, 'already_exists')) throw error
        await write(certificate, order)
      }
      return order
    },
    write,
    async remove(certificate) {
      await ignoringGone(store.delete(Secret, keyOf(certificate)))
    },
  }
}

const dataOf = ({ state, key, certificate = '' }: StoredOrder): Record<string, string> =>
  encodeSecret({ state: JSON.stringify(state), 'tls.key': key, 'tls.crt': certificate })

/** Returns the order in a Secret; undefined when its content is invalid, so that another order is made. */
function storedIn({ data }: Secret): StoredOrder | undefined {
  const key = decodeSecret(data, 'tls.key') ?? ''
  const certificate = decodeSecret(data, 'tls.crt') ?? ''
  try {
    const state = OrderState.parse(JSON.parse(decodeSecret(data, 'state') ?? ''))
    return key === '' ? undefined : { state, key, certificate: certificate === '' ? undefined : certificate }
  } catch {
    return undefined
  }
}

/** Creates a private key on P-256, which every CA and client accepts. PKCS #8 in PEM. */
export function newKey(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}

/** Issued certificate with its key; undefined while there is none. */
export const issuedPair = ({ state, key, certificate }: StoredOrder): KeyPair | undefined =>
  state.phase === 'issued' && certificate !== undefined ? { certificate, key } : undefined
