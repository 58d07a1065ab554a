import { randomUUID } from 'node:crypto'
import { importJWK, type JWTPayload, SignJWT } from 'jose'
import { type Answer, codeOf, type Instance, type Tunnel, type Call } from './answers.ts'
import { removeDatabases } from './databases.ts'
import type { Installation } from '../deployment/installation.ts'

export type Role = 'viewer' | 'editor' | 'admin'

/** Organization with one namespace, and a caller for each role in it. */
export interface Tenant {
  readonly organization: string
  readonly namespace: string
  /** Namespace as `acme/prod`. */
  readonly home: string
  /** Path of the namespace: `/v1/organizations/acme/namespaces/prod`. */
  readonly path: string
  /** Returns the token of a new user with this role, with a rate limit of its own. */
  token(role: Role): Promise<string>
  /** Calls the API as one user with this role. */
  as(role: Role): Call
  /** Creates an instance as an editor. */
  instance(more?: object): Promise<Instance>
  /** Creates a tunnel with this config as an editor, in the region that has tunnels. */
  tunnel(config?: object): Promise<Tunnel>
  /** Deletes all databases, tunnels and API tokens, then the namespace and the organization. */
  remove(): Promise<void>
}

export interface TenantDeps {
  /** Calls the API, by default with a platform admin's token. */
  readonly call: Call
  readonly tokens: Tokens
  readonly instanceBody: (more?: object) => Readonly<Record<string, unknown>>
  readonly slug: string
}

/** Creates an organization `{slug}` with a namespace `prod`. */
export async function createTenant({ call, tokens, instanceBody, slug }: TenantDeps): Promise<Tenant> {
  const namespace = 'prod'
  const home = `${slug}/${namespace}`
  const organizationPath = `/v1/organizations/${slug}`
  const path = `${organizationPath}/namespaces/${namespace}`
  await expectSuccess(call('POST', '/v1/organizations', { body: { slug, name: `Organization ${slug}` } }))
  await expectSuccess(call('POST', `${organizationPath}/namespaces`, { body: { slug: namespace, name: 'Production' } }))
  const token = (role: Role) => tokens.mint({ subject: `${role}-${randomUUID()}`, namespace: home, role })

  function as(role: Role): Call {
    let own: Promise<string> | undefined
    return async (method, to, options) => call(method, to, { token: await (own ??= token(role)), ...options })
  }

  async function instance(more: object = {}): Promise<Instance> {
    return (await expectSuccess(as('editor')('POST', '/v1/instances', { body: instanceBody(more) }))).body.data.instance
  }

  async function tunnel(config: object = {}): Promise<Tunnel> {
    const body = { name: 'web', regionId: await regionId(call), config }
    return (await expectSuccess(as('editor')('POST', `${path}/tunnels`, { body }))).body.data.tunnel
  }

  async function remove(): Promise<void> {
    const admin = as('admin')
    await removeDatabases(admin, slug)
    const { tunnels } = (await expectSuccess(admin('GET', `${path}/tunnels?limit=200`))).body.data
    await Promise.all(tunnels.map(({ id }) => removeResource(as('admin'), `${path}/tunnels/${id}`)))
    const { instances } = (await expectSuccess(admin('GET', '/v1/instances?limit=200'))).body.data
    await Promise.all(instances.map(({ id }) => removeResource(as('admin'), `/v1/instances/${id}`)))
    const { apiTokens } = (await expectSuccess(admin('GET', `${path}/api-tokens?limit=200`))).body.data
    await Promise.all(apiTokens.map(({ id }) => removeResource(admin, `${path}/api-tokens/${id}`)))
    await removeResource(call, path)
    await removeResource(call, organizationPath)
  }

  return { organization: slug, namespace, home, path, token, as, instance, tunnel, remove }
}

/** Deletes a resource. The response is 202 or 503 when that takes longer than a request may: the next request waits for the same deletion. */
export async function removeResource(call: Call, path: string): Promise<void> {
  const answer = await call('DELETE', path)
  if ([202, 503].includes(answer.status)) await removeResource(call, path)
  else if (answer.status !== 404) await expectSuccess(Promise.resolve(answer))
}

/** Returns the `regionId` of a region that has tunnels. */
export async function regionId(call: Call): Promise<number> {
  const { regions } = (await expectSuccess(call('GET', '/v1/regions'))).body.data
  const region = regions.find((each) => each.tunnels)
  if (!region) throw new Error('no region has tunnels')
  return region.regionId
}

/** Expects a success, and returns the response. @throws Error with code and message of an error response */
export async function expectSuccess(answer: Promise<Answer>): Promise<Answer> {
  const arrived = await answer
  if (arrived.status < 300) return arrived
  throw new Error(`${codeOf(arrived)}: ${arrived.body.msg}`)
}

/** Claims of a valid token besides its issuer. */
export interface Holder {
  readonly subject: string
  /** Namespace as `acme/prod`. */
  readonly namespace?: string | undefined
  readonly role?: string | undefined
  readonly groups?: readonly string[] | undefined
  readonly ttlSeconds?: number | undefined
}

/** Signer of tokens with the key of the installation's own issuer. */
export interface Tokens {
  /** Signs a valid token, by default for one hour. */
  mint(holder: Holder): Promise<string>
  /** Signs a token with exactly these claims, for tests of rejected claims with a valid signature. */
  sign(claims: JWTPayload): Promise<string>
  /** Returns the claims of a valid token, for a test to change. */
  claims(holder: Holder): JWTPayload
}

export function createTokens({ issuer: { issuer, privateKey } }: Pick<Installation, 'issuer'>): Tokens {
  function claims({ subject, namespace, role, groups, ttlSeconds = 3_600 }: Holder): JWTPayload {
    const now = Math.floor(Date.now() / 1e3)
    const about = { mooring_namespace: namespace, mooring_role: role, groups }
    return { ...about, iss: issuer, aud: 'mooring', sub: subject, iat: now, exp: now + ttlSeconds }
  }

  async function sign(payload: JWTPayload): Promise<string> {
    const header = { alg: 'EdDSA', typ: 'JWT', ...(privateKey.kid !== undefined && { kid: privateKey.kid }) }
    return new SignJWT(payload).setProtectedHeader(header).sign(await importJWK(privateKey, 'EdDSA'))
  }

  return { claims, sign, mint: (holder) => sign(claims(holder)) }
}
