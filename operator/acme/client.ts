import { z } from 'zod'
import type { Client } from 'acme-client'
import { AcmeError, Problem, sentenceOf, typeOf } from './acme-error.ts'
import { retryAfterMs } from '../../shared/retry-after.ts'
import type { Transport, TransportResponse } from './transport.ts'

export interface AcmeClientDeps {
  readonly directoryUrl: string
  /** Private key of the account, PEM. */
  readonly accountKey: string
  /** URL of the registered account; undefined before the registration. */
  readonly accountUrl: string | undefined
  readonly externalAccount: { readonly keyId: string; readonly hmacKey: string } | undefined
  readonly transport: Transport
  readonly now: () => Date
}

/** Successful response of the CA. */
export interface AcmeResponse<T> {
  readonly data: T
  /** `Location`: the URL of the resource. */
  readonly location: string | undefined
  /** `Retry-After` in milliseconds. */
  readonly retryAfterMs: number | undefined
  /** URL of the next page of a list: `Link` with the relation `next` (RFC 8288). */
  readonly next?: string | undefined
}

/** Parts of acme-client that its type declarations leave out. */
interface Untyped {
  readonly http: {
    maxBadNonceRetries: number
    request(
      url: string,
      method: string,
      options?: { headers?: Record<string, string>; data?: unknown },
    ): Promise<TransportResponse>
    getNonce(): Promise<string>
    getDirectory(): Promise<unknown>
    getJwk(): object
    createSignedBody(url: string, payload: object): object
  }
  readonly api: {
    apiRequest(url: string, payload: object | null, valid: readonly number[], options?: object): Promise<TransportResponse>
  }
}

const Directory = z.object({
  newNonce: z.url(),
  newAccount: z.url(),
  newOrder: z.url(),
  revokeCert: z.url().optional(),
  keyChange: z.url().optional(),
  renewalInfo: z.url().optional(),
  meta: z
    .object({
      profiles: z.record(z.string(), z.string()).optional(),
      externalAccountRequired: z.boolean().optional(),
      caaIdentities: z.array(z.string()).optional().catch(undefined),
      /** Fields of dns-persist-01, draft 02. */
      accountHashPrefix: z.string().optional().catch(undefined),
      issuerDomainNames: z.array(z.string()).optional().catch(undefined),
    })
    .optional(),
})
export type Directory = z.output<typeof Directory>

/** Signed requests to a CA. Every method throws AcmeError. */
export interface AcmeClient {
  directory(): Promise<Directory>
  /** Registers the account, or finds the existing account of the key. */
  register(payload: object): Promise<AcmeResponse<unknown>>
  /** Replaces the key of the account with this URL by a private key in PEM (RFC 8555, section 7.3.5). */
  changeKey(accountUrl: string, key: string): Promise<void>
  /** Sends a signed request as the account; a payload of null is a POST-as-GET (RFC 8555, section 6.3). */
  post<T>(url: string, payload: object | null, schema: z.ZodType<T>): Promise<AcmeResponse<T>>
  /** Sends an unsigned GET request. */
  get<T>(url: string, schema: z.ZodType<T>): Promise<AcmeResponse<T>>
}

/** Repetitions of a request whose nonce the CA rejects. Of 60 orders at a CA that rejects 60 % of them, five failed with the library's five. */
const NONCE_RETRIES = 20
/** Maximum number of unused nonces that a client keeps. */
const NONCES_MAX = 32

/**
 * Creates a client of one CA on top of the library acme-client, which signs requests, repeats those with a rejected nonce, and binds external
 * accounts. `transport` replaces the library's HTTP, and the nonce of a response is used for a later request (RFC 8555, section 6.5). The
 * library is imported here, so that only processes that use ACME load it.
 */
export async function createAcmeClient(deps: AcmeClientDeps): Promise<AcmeClient> {
  const { directoryUrl, transport, now, externalAccount } = deps
  const { default: acme } = await import('acme-client')
  const client = new acme.Client({
    directoryUrl,
    accountKey: deps.accountKey,
    ...(deps.accountUrl !== undefined && { accountUrl: deps.accountUrl }),
    ...(externalAccount && { externalAccountBinding: { kid: externalAccount.keyId, hmacKey: externalAccount.hmacKey } }),
  })
  const { http, api } = partsOf(client)
  http.maxBadNonceRetries = NONCE_RETRIES
  const nonces: string[] = []
  const askNonce = http.getNonce.bind(http)
  http.request = async (url, method, { headers = {}, data } = {}) => {
    const type = { ...headers, 'Content-Type': 'application/jose+json' }
    const answer = await transport.send(url, {
      method: method.toUpperCase(),
      headers: type,
      body: data === undefined ? undefined : JSON.stringify(data),
    })
    const nonce = answer.headers['replay-nonce']
    if (nonce !== undefined && method.toLowerCase() !== 'head' && nonces.length < NONCES_MAX && !isBadNonce(answer)) {
      nonces.push(nonce)
    }
    return answer
  }
  http.getNonce = async () => nonces.pop() ?? askNonce()

  async function directory(): Promise<Directory> {
    return checked(Directory, await rejecting(() => http.getDirectory()), 'directory')
  }

  async function register(payload: object): Promise<AcmeResponse<unknown>> {
    const { newAccount } = await directory()
    const options = { includeJwsKid: false, includeExternalAccountBinding: !('onlyReturnExisting' in payload) }
    return answered(newAccount, await rejecting(() => api.apiRequest(newAccount, payload, [], options)), z.unknown())
  }

  async function changeKey(account: string, key: string): Promise<void> {
    const { keyChange } = await directory()
    if (keyChange === undefined) {
      throw new AcmeError('acme_rejected', 'the certificate authority offers no change of the account key')
    }
    const { http: next } = partsOf(new acme.Client({ directoryUrl, accountKey: key }))
    const proof = next.createSignedBody(keyChange, { account, oldKey: http.getJwk() })
    answered(keyChange, await rejecting(() => api.apiRequest(keyChange, proof, [])), z.unknown())
  }

  function answered<T>(url: string, { status, headers, data }: TransportResponse, schema: z.ZodType<T>): AcmeResponse<T> {
    const retry = retryAfterMs(headers['retry-after'], now().getTime())
    if (status < 200 || status > 299) throw rejected(status, data, retry)
    const next = nextPage(headers.link, url)
    return { data: checked(schema, data, 'resource'), location: headers.location, retryAfterMs: retry, next }
  }

  return {
    directory,
    register,
    changeKey,
    post: async (url, payload, schema) => answered(url, await rejecting(() => api.apiRequest(url, payload, [])), schema),
    get: async (url, schema) => answered(url, await transport.send(url, { method: 'GET', headers: {} }), schema),
  }
}

function nextPage(link: string | undefined, url: string): string | undefined {
  const [, target] = /<([^<>]*)>\s*;[^,<>]*\brel="?next"?/.exec(link ?? '') ?? []
  return target === undefined ? undefined : URL.parse(target, url)?.href
}

function partsOf(client: Client & Partial<Untyped>): Untyped {
  const { http, api } = client
  if (!http || !api) throw new Error('this version of acme-client has another structure')
  return { http, api }
}

const isBadNonce = ({ status, data }: TransportResponse): boolean =>
  status === 400 && typeOf(Problem.safeParse(data).data ?? {}) === 'badNonce'

/** Runs `act` and turns the library's own errors, which are plain Errors, into AcmeErrors. */
async function rejecting<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (cause) {
    if (cause instanceof AcmeError) throw cause
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new AcmeError('acme_invalid_answer', `the certificate authority has not answered as expected: ${why.slice(0, 200)}`, {
      cause,
    })
  }
}

function rejected(status: number, data: unknown, retry: number | undefined): AcmeError {
  const problem = Problem.safeParse(data).data ?? {}
  const text = problem.type === undefined && problem.detail === undefined ? `HTTP status ${status}` : sentenceOf(problem)
  const about = { type: typeOf(problem), status, retryAfterMs: retry }
  return new AcmeError('acme_rejected', `the certificate authority has answered: ${text}`, about)
}

function checked<T>(schema: z.ZodType<T>, data: unknown, what: string): T {
  const result = schema.safeParse(data)
  if (result.success) return result.data
  const [issue] = result.error.issues
  const where = issue ? `${issue.path.join('.')}: ${issue.message}` : ''
  throw new AcmeError('acme_invalid_answer', `the certificate authority has sent an invalid ${what} (${where})`)
}
