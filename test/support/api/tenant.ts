import { randomUUID } from 'node:crypto'
import { type Answer, codeOf, type Instance, type Tunnel } from './answers.ts'
import type { Call } from './answers.ts'
import type { Tokens } from './tokens.ts'

export type Role = 'viewer' | 'editor' | 'admin'

/** An organization with one namespace, and a caller for each role in it. */
export interface Tenant {
  readonly organization: string
  readonly namespace: string
  /** `acme/prod` */
  readonly home: string
  /** `/v1/organizations/acme/namespaces/prod` */
  readonly path: string
  /** A token of somebody with this role here: somebody new each time, with an allowance of requests of their own. */
  token(role: Role): Promise<string>
  /** Calls as {@link Tenant.token} of that role, all of these as the same somebody. */
  as(role: Role): Call
  /** A new instance, made by an editor. */
  instance(more?: object): Promise<Instance>
  /** A new tunnel with this config in the region that has them, made by an editor. */
  tunnel(config?: object): Promise<Tunnel>
  /** Deletes all instances, tunnels and API tokens, the namespace and the organization. */
  remove(): Promise<void>
}

export interface TenantDeps {
  /** With a platform admin's token unless told otherwise. */
  readonly call: Call
  readonly tokens: Tokens
  readonly instanceBody: (more?: object) => Readonly<Record<string, unknown>>
  readonly slug: string
}

/** Makes an organization `{slug}` with a namespace `prod`. */
export async function createTenant({ call, tokens, instanceBody, slug }: TenantDeps): Promise<Tenant> {
  const namespace = 'prod'
  const home = `${slug}/${namespace}`
  const organizationPath = `/v1/organizations/${slug}`
  const path = `${organizationPath}/namespaces/${namespace}`
  await succeed(call('POST', '/v1/organizations', { body: { slug, name: `Organization ${slug}` } }))
  await succeed(call('POST', `${organizationPath}/namespaces`, { body: { slug: namespace, name: 'Production' } }))
  const token = (role: Role) => tokens.mint({ subject: `${role}-${randomUUID()}`, namespace: home, role })

  function as(role: Role): Call {
    let own: Promise<string> | undefined
    return async (method, to, options) => call(method, to, { token: await (own ??= token(role)), ...options })
  }

  async function instance(more: object = {}): Promise<Instance> {
    return (await succeed(as('editor')('POST', '/v1/instances', { body: instanceBody(more) }))).body.data.instance
  }

  async function tunnel(config: object = {}): Promise<Tunnel> {
    const body = { name: 'web', regionId: await regionId(call), config }
    return (await succeed(as('editor')('POST', `${path}/tunnels`, { body }))).body.data.tunnel
  }

  /** A deletion that takes long is accepted, and joined by the next request for it. */
  async function removeInstance(instancePath: string): Promise<void> {
    const answer = await as('admin')('DELETE', instancePath)
    if (answer.status === 202) await removeInstance(instancePath)
    else if (answer.status !== 404) await succeed(Promise.resolve(answer))
  }

  async function remove(): Promise<void> {
    const admin = as('admin')
    const { tunnels } = (await succeed(admin('GET', `${path}/tunnels?limit=200`))).body.data
    await Promise.all(tunnels.map(({ id }) => succeed(as('admin')('DELETE', `${path}/tunnels/${id}`))))
    const { instances } = (await succeed(admin('GET', '/v1/instances?limit=200'))).body.data
    await Promise.all(instances.map(({ id }) => removeInstance(`/v1/instances/${id}`)))
    const { apiTokens } = (await succeed(admin('GET', `${path}/api-tokens?limit=200`))).body.data
    await Promise.all(apiTokens.map(({ id }) => succeed(admin('DELETE', `${path}/api-tokens/${id}`))))
    await succeed(call('DELETE', path))
    await succeed(call('DELETE', organizationPath))
  }

  return { organization: slug, namespace, home, path, token, as, instance, tunnel, remove }
}

/** `regionId` of a region that has tunnels. */
export async function regionId(call: Call): Promise<number> {
  const { regions } = (await succeed(call('GET', '/v1/regions'))).body.data
  const region = regions.find((each) => each.tunnels)
  if (!region) throw new Error('no region has tunnels')
  return region.regionId
}

/** The answer, when it is a success. @throws Error with what was refused and why */
export async function succeed(answer: Promise<Answer>): Promise<Answer> {
  const arrived = await answer
  if (arrived.status < 300) return arrived
  throw new Error(`${codeOf(arrived)}: ${arrived.body.msg}`)
}
