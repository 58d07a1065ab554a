import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { ApiToken } from '../../../crds/api-token.ts'
import { annotations, ROLES } from '../../../crds/names.ts'
import { ApiTokenData, apiTokenView, expiryOf, PROOF_OF_ROLE } from '../api-tokens.ts'
import { deriveApiToken, randomApiToken, sha256OfToken } from '../../auth/api-token.ts'
import { settled, untilKnown } from '../../resources/cache-waits.ts'
import { createdNow } from '../../resources/created-at.ts'
import { ApiError } from '../../http/errors.ts'
import { createOnce, objectName, requestHash } from '../../http/idempotency.ts'
import { DisplayName } from '../organizations.ts'
import { Time } from '../../http/rfc3339.ts'
import { type AnyRoute, LISTENERS, route } from '../../http/route.ts'
import { NAMESPACE_PATH, NamespaceParams, type TenancyDeps } from '../tenancy-deps.ts'

const Body = z
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
    body: Body,
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
