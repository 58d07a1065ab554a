import { randomBytes } from 'node:crypto'
import { inject } from 'vitest'
import { expectValidBody, createOpenApiExpectation, type OpenApiExpectation } from '../api/answer-rules.ts'
import type { Body, Call, CallOptions, Listener } from '../api/answers.ts'
import { createHttpsClient, type Incoming } from '../api/https-client.ts'
import type { Installation } from './installation.ts'
import { createTenant, type Tenant, createTokens, type Tokens } from '../api/tenant.ts'

/** Mooring under test, in either deployment mode. */
export interface Deployment extends AsyncDisposable {
  readonly installation: Installation
  readonly tokens: Tokens
  readonly call: Call
  /** Calls the API as one platform admin. */
  admin(): Call
  /** Requests documents, pages and health checks, which do not have the form of the API's responses. */
  page(path: string, options?: Pick<CallOptions, 'on' | 'headers'> & { readonly method?: string }): Promise<Incoming>
  /** Creates an organization with one namespace. Disposing the deployment removes both with their content. */
  namespace(): Promise<Tenant>
  /** Returns a body for `POST /v1/instances`. */
  instanceBody(more?: object): Readonly<Record<string, unknown>>
}

/** Opens the deployment under test. Dispose of it at the end of the file. */
export function openDeployment(): Deployment {
  const installation = inject('installation')
  const client = createHttpsClient(installation.ca)
  const tokens = createTokens(installation)
  const checks = new Map<Listener, Promise<OpenApiExpectation>>()
  const tenants: Tenant[] = []
  const adminToken = () => tokens.mint({ subject: `suite-${freshSlug()}`, role: 'platform-admin' })

  const urlOf = (on: Listener, path: string) => `${on === 'shared' ? installation.sharedUrl : installation.dedicatedUrl}${path}`
  const page: Deployment['page'] = (path, { on = 'shared', method = 'GET', headers = {} } = {}) =>
    client.send(urlOf(on, path), { method, headers })

  function checkOf(on: Listener): Promise<OpenApiExpectation> {
    const known = checks.get(on) ?? page('/openapi.json', { on }).then(({ text }) => createOpenApiExpectation(JSON.parse(text)))
    checks.set(on, known)
    return known
  }

  const call: Call = async (method, path, { token, headers = {}, body, on = 'shared' } = {}) => {
    const bearer = token === undefined ? await adminToken() : token
    const incoming = await client.send(urlOf(on, path), {
      method,
      headers: {
        ...(bearer !== null && { Authorization: `Bearer ${bearer}` }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      body: body instanceof Uint8Array || body === undefined ? body : JSON.stringify(body),
    })
    const { status } = incoming
    const answer = expectValidBody(incoming)
    const check = await checkOf(on)
    check({ method, path: path.replace(/\?.*$/s, ''), status, body: answer })
    return { status, headers: incoming.headers, body: answer as Body }
  }

  const instanceBody: Deployment['instanceBody'] = (more = {}) => ({
    ...{ identifier: 'PR #7', region: installation.region.id, motor: installation.motor },
    ...more,
  })

  return {
    ...{ installation, tokens, call, page },
    admin() {
      let own: Promise<string> | undefined
      return async (method, path, options) => call(method, path, { token: await (own ??= adminToken()), ...options })
    },
    async namespace() {
      const tenant = await createTenant({ call, tokens, instanceBody, slug: freshSlug() })
      tenants.push(tenant)
      return tenant
    },
    instanceBody,
    async [Symbol.asyncDispose]() {
      for (const tenant of tenants) await tenant.remove()
      client[Symbol.dispose]()
    },
  }
}

/** Returns a unique slug. */
export const freshSlug = (): string => `t${randomBytes(6).toString('hex')}`
