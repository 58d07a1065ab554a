import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { API_TOKEN_LIFE_MS, ApiToken, endOfApiToken } from '../../crds/api-token.ts'
import type { Cache } from '../../store/cache.ts'
import { type Role, ROLES, annotations } from '../../crds/names.ts'
import type { Question } from '../../store/access.ts'
import { type CatchUp, settled, untilGone, untilKnown } from '../resources/cache-waits.ts'
import { createdAtOf } from '../resources/names-and-times.ts'
import { ApiError, wrongField } from '../http/errors.ts'
import { idParam, NamespaceParams, listOf, NAMESPACE_PATH, Nothing, type TenancyDeps, DisplayName } from './tenancy-deps.ts'
import { page, PageQuery, resourceKey } from '../http/paging.ts'
import { type AnyRoute, LISTENERS, route } from '../http/route.ts'
import { deriveApiToken, randomApiToken, sha256OfToken } from '../auth/api-token.ts'
import { createdNow, Time } from '../resources/names-and-times.ts'
import { createOnce, objectName, requestHash } from '../resources/creations.ts'
import { deleteExpected } from '../resources/conditional-writes.ts'

const DAY_MS = 86_400_000
const DEFAULT_LIFE_MS = 90 * DAY_MS

const ApiTokenView = z
  .object({
    id: z.uuid(),
    name: z.string(),
    role: z.enum(ROLES),
    expiresAt: z.iso.datetime(),
    createdAt: z.iso.datetime(),
    token: z.string().optional().describe('Only in the answer to the creation.'),
  })
  .meta({ id: 'ApiToken' })

const ApiTokenData = z.object({ apiToken: ApiTokenView })
/** Path parameters. Text that is not an id is 404, not 400. */
const ApiTokenParams = z.object({ ...NamespaceParams.shape, id: idParam('Id of the API token.') })

interface Deps {
  readonly apiTokens: Cache<typeof ApiToken>
  readonly catchUp: CatchUp
}

/** Finds an API token of a namespace by its id. @throws ApiError `not_found` */
async function findApiToken({ apiTokens, catchUp }: Deps, namespace: string, id: string): Promise<ApiToken> {
  const object = await catchUp(apiTokens, () => apiTokens.byUid(id.toLowerCase()))
  if (object?.metadata.namespace === namespace) return object
  throw new ApiError('not_found', 'there is no API token with this id in this namespace')
}

function apiTokenView(token: ApiToken): z.output<typeof ApiTokenView> {
  const { metadata, spec } = token
  return {
    id: metadata.uid,
    name: spec.displayName,
    role: spec.role,
    expiresAt: new Date(endOfApiToken(token)).toISOString(),
    createdAt: createdAtOf(metadata),
  }
}

/** Returns the expiry of a new token. @throws ApiError `invalid_request` naming `expiresAt` */
export function expiryOf(expiresAt: string | undefined, now: number): string {
  const at = expiresAt === undefined ? now + DEFAULT_LIFE_MS : Date.parse(expiresAt)
  if (at > now && at <= now + API_TOKEN_LIFE_MS) return new Date(at).toISOString()
  throw wrongField('expiresAt', at > now ? 'must be at most a year from now' : 'must be in the future')
}

/** Right that only this role and stronger ones have. A caller with it may create tokens of the role. */
const PROOF_OF_ROLE: Readonly<Record<Role, Pick<Question, 'verb' | 'resource'>>> = {
  viewer: { verb: 'list', resource: 'sharedinstances' },
  editor: { verb: 'create', resource: 'sharedinstances' },
  admin: { verb: 'create', resource: 'rolebindings' },
}

/** `GET …/api-tokens`: without the tokens, which are not stored. */
export function listApiTokens({ scopes, apiTokens }: Pick<TenancyDeps, 'scopes' | 'apiTokens'>): AnyRoute {
  return route({
    method: 'get',
    path: `${NAMESPACE_PATH}/api-tokens`,
    on: LISTENERS,
    id: 'listApiTokens',
    summary: 'List the API tokens of a namespace.',
    params: NamespaceParams,
    query: z.object(PageQuery),
    replies: { 200: listOf('apiTokens', ApiTokenView) },
    async handle({ principal, params, query }) {
      const { namespace } = await scopes.ofPath(principal, params)
      await scopes.require(principal, { verb: 'list', resource: 'apitokens', namespace })
      const { items, nextCursor } = page(apiTokens.list({ namespace }), query, resourceKey)
      return { status: 200, data: { apiTokens: items.map(apiTokenView), nextCursor } }
    },
  })
}

type GetDeps = Pick<TenancyDeps, 'scopes' | 'apiTokens' | 'catchUp'>

/** `GET …/api-tokens/{id}`: the token as in lists, with the ETag for a conditional `DELETE`. */
export function getApiToken(deps: GetDeps): AnyRoute {
  return route({
    method: 'get',
    path: `${NAMESPACE_PATH}/api-tokens/{id}`,
    on: LISTENERS,
    id: 'getApiToken',
    summary: 'Get one API token, without the token itself.',
    params: ApiTokenParams,
    replies: { 200: ApiTokenData },
    async handle({ principal, params: { id, ...slugs } }) {
      const { namespace } = await deps.scopes.ofPath(principal, slugs)
      await deps.scopes.require(principal, { verb: 'get', resource: 'apitokens', namespace })
      const object = await findApiToken(deps, namespace, id)
      return { status: 200, data: { apiToken: apiTokenView(object) }, etag: object.metadata.resourceVersion }
    },
  })
}

const CreateBody = z
  .object({
    name: DisplayName,
    role: z.enum(ROLES),
    expiresAt: Time.optional().describe('At most a year from now; 90 days when absent.'),
  })
  .meta({ id: 'CreateApiToken', examples: [{ name: 'ci', role: 'editor' }] })

/** `POST …/api-tokens`: only this answer, and its repetition with the same Idempotency-Key, contains the token. */
export function createApiToken(deps: TenancyDeps): AnyRoute {
  const { store, scopes, apiTokens, apiTokenQuota, tokenSecret, audit, now } = deps
  return route({
    method: 'post',
    path: `${NAMESPACE_PATH}/api-tokens`,
    on: LISTENERS,
    id: 'createApiToken',
    summary: 'Create an API token with a role in a namespace.',
    params: NamespaceParams,
    body: CreateBody,
    idempotent: true,
    replies: { 201: ApiTokenData },
    async handle({ principal, params, body, idempotencyKey: key, requestId, sourceIp }) {
      const { namespace } = await scopes.ofPath(principal, params)
      await scopes.require(principal, { verb: 'create', resource: 'apitokens', namespace })
      await scopes.require(principal, { ...PROOF_OF_ROLE[body.role], namespace })
      const name = objectName('token', { namespace, user: principal.user, key })
      // A repeated request keeps the first one's expiry, which may be past by now.
      const earlier = apiTokens.get({ namespace, name })
      const at = now()
      const expiresAt = earlier?.spec.expiresAt ?? expiryOf(body.expiresAt, at.getTime())
      const salt = randomBytes(32).toString('base64url')
      const token = key === undefined ? randomApiToken() : deriveApiToken(tokenSecret, salt)
      const draft = {
        metadata: {
          name,
          namespace,
          annotations: {
            [annotations.createdBy]: principal.user,
            ...createdNow(at),
            ...(key === undefined ? {} : { [annotations.tokenSalt]: salt }),
          },
        },
        spec: { displayName: body.name, role: body.role, expiresAt, sha256: sha256OfToken(token) },
      }
      using reservations = new DisposableStack()
      reservations.use(apiTokenQuota.reserve({ namespace, name }))
      const { object, created } = await createOnce(store, ApiToken, draft, requestHash(body))
      if (created) await audit.record({ principal, requestId, sourceIp, action: 'create', after: object })
      await untilKnown(apiTokens, object, scopes.rejectWhenDeleted({ namespace }))
      const shown = created ? token : tokenOf(object, tokenSecret)
      const { resourceVersion: etag } = (await settled(apiTokens, object)).metadata
      return { status: 201, data: { apiToken: { ...apiTokenView(object), token: shown } }, etag }
    },
  })
}

/** Returns the token of an object that a request with the same Idempotency-Key created. @throws ApiError `conflict` when the secret has changed */
function tokenOf({ metadata, spec }: ApiToken, secret: Uint8Array): string {
  const token = deriveApiToken(secret, metadata.annotations?.[annotations.tokenSalt] ?? '')
  if (sha256OfToken(token) === spec.sha256) return token
  throw new ApiError('conflict', 'this API token cannot be shown again; delete it and create another')
}

type DeleteDeps = Pick<TenancyDeps, 'store' | 'scopes' | 'apiTokens' | 'audit' | 'catchUp'>

/** `DELETE …/api-tokens/{id}`: the token is invalid on this server when the answer is sent. */
export function deleteApiToken({ store, scopes, apiTokens, audit, catchUp }: DeleteDeps): AnyRoute {
  return route({
    method: 'delete',
    path: `${NAMESPACE_PATH}/api-tokens/{id}`,
    on: LISTENERS,
    id: 'deleteApiToken',
    summary: 'Revoke an API token.',
    params: ApiTokenParams,
    conditional: true,
    replies: { 200: Nothing },
    async handle({ principal, params: { id, ...slugs }, ifMatch, requestId, sourceIp }) {
      const { namespace } = await scopes.ofPath(principal, slugs)
      await scopes.require(principal, { verb: 'delete', resource: 'apitokens', namespace })
      const object = await findApiToken({ apiTokens, catchUp }, namespace, id)
      await deleteExpected(store, ApiToken, object, ifMatch)
      await audit.record({ principal, requestId, sourceIp, action: 'delete', before: object })
      await untilGone(apiTokens, object)
      return { status: 200, data: {} }
    },
  })
}
