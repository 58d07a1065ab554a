import { z } from 'zod'
import { API_TOKEN_LIFE_MS, type ApiToken, endOfApiToken } from '../../crds/api-token.ts'
import type { Cache } from '../../store/cache.ts'
import { type Role, ROLES } from '../../crds/names.ts'
import type { Question } from '../../store/access.ts'
import type { CatchUp } from '../resources/cache-waits.ts'
import { createdAtOf } from '../resources/timestamps.ts'
import { ApiError, wrongField } from '../http/errors.ts'
import { idParam, NamespaceParams } from './tenancy-deps.ts'

const DAY_MS = 86_400_000
export const DEFAULT_LIFE_MS = 90 * DAY_MS

export const ApiTokenView = z
  .object({
    id: z.uuid(),
    name: z.string(),
    role: z.enum(ROLES),
    expiresAt: z.iso.datetime(),
    createdAt: z.iso.datetime(),
    token: z.string().optional().describe('Only in the answer to the creation.'),
  })
  .meta({ id: 'ApiToken' })

export const ApiTokenData = z.object({ apiToken: ApiTokenView })
/** Path parameters. Text that is not an id is 404, not 400. */
export const ApiTokenParams = z.object({ ...NamespaceParams.shape, id: idParam('Id of the API token.') })

interface Deps {
  readonly apiTokens: Cache<typeof ApiToken>
  readonly catchUp: CatchUp
}

/** Finds an API token of a namespace by its id. @throws ApiError `not_found` */
export async function findApiToken({ apiTokens, catchUp }: Deps, namespace: string, id: string): Promise<ApiToken> {
  const object = await catchUp(apiTokens, () => apiTokens.byUid(id.toLowerCase()))
  if (object?.metadata.namespace === namespace) return object
  throw new ApiError('not_found', 'there is no API token with this id in this namespace')
}

export function apiTokenView(token: ApiToken): z.output<typeof ApiTokenView> {
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
export const PROOF_OF_ROLE: Readonly<Record<Role, Pick<Question, 'verb' | 'resource'>>> = {
  viewer: { verb: 'list', resource: 'sharedinstances' },
  editor: { verb: 'create', resource: 'sharedinstances' },
  admin: { verb: 'create', resource: 'rolebindings' },
}
