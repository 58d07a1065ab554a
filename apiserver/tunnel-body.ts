import { z } from 'zod'
import type { Rule } from '../crds/kind.ts'
import { CONFIG_RULES, FIELD_RULES, TunnelConfig } from '../crds/tunnel-config.ts'
import { isWholeKey } from '../crds/ssh-public-key.ts'
import { DISPLAY_NAME, DISPLAY_NAME_RULE } from '../crds/tunnel.ts'
import { TTL_SECONDS } from './instance-body.ts'

const Name = z.string(DISPLAY_NAME_RULE).regex(DISPLAY_NAME, DISPLAY_NAME_RULE)
const ttlRule = `must be an integer from ${TTL_SECONDS.min} to ${TTL_SECONDS.max}`

type Check = z.core.$RefinementCtx

const DEFAULTS = TunnelConfig.parse({})

/** The rules of a Tunnel's config that no schema can say, as errors of the body, beside those that the schema found in other fields. */
const checkRules =
  (rules: readonly Rule[]) =>
  (given: object, context: Check): void => {
    const wrong = new Set(context.issues.map(({ path }) => path?.[0]))
    const config = { ...DEFAULTS, ...withoutNulls(given) }
    for (const { holds, field, message } of rules) {
      const path = field.split('.').slice('spec.config'.split('.').length)
      if (wrong.has(path[0]) || holds({ config } as never, { name: '' })) continue
      context.issues.push({ code: 'custom', message, path, input: given })
    }
    checkKeys(config.authorizedKeys, context)
  }

/** A key that can never log in is refused where somebody reads the refusal; the edge passes over one that came another way. */
function checkKeys(keys: unknown, context: Check): void {
  if (!Array.isArray(keys)) return
  const wrong = new Set(context.issues.filter(({ path }) => path?.[0] === 'authorizedKeys').map(({ path }) => path?.[1]))
  for (const [index, key] of keys.entries()) {
    if (wrong.has(index) || typeof key !== 'string' || isWholeKey(key)) continue
    const message = 'must be a whole key of the type that it names, RSA with 2048 bits or more'
    context.issues.push({ code: 'custom', message, path: ['authorizedKeys', index], input: keys })
  }
}

const withoutNulls = (given: object): object =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null && value !== undefined))

/** Also over a config that has other faults: every wrong field is to be named at once. */
const EVEN_SO: z.core.$ZodSuperRefineParams = {
  when: ({ value }) => typeof value === 'object' && value !== null && !Array.isArray(value),
}

/** Body of `POST …/tunnels` (contract, "Tunnel"). Whether the region is there is not the schema's to say: that is 422, not 400. */
export const CreateTunnelBody = z
  .object({
    name: Name.describe('Label of your choice; need not be unique.'),
    regionId: z.int().describe('`regionId` of a region in `GET /v1/regions`.'),
    config: TunnelConfig.superRefine(checkRules(CONFIG_RULES), EVEN_SO).optional().describe('Its settings; each has a default.'),
    ttl: z.int(ttlRule).min(TTL_SECONDS.min, ttlRule).max(TTL_SECONDS.max, ttlRule).optional().describe('Seconds to live.'),
  })
  .meta({ id: 'CreateTunnel', examples: [{ name: 'web', regionId: 1, config: { httpsOnly: true } }] })
export type CreateTunnelBody = z.output<typeof CreateTunnelBody>

const { shape } = TunnelConfig

/**
 * A merge patch of a config: lists are replaced whole, null puts the default back. What several fields have to agree on is the store's to say,
 * which knows those that are not in the patch.
 */
const ConfigPatch = z
  .object({
    httpsOnly: shape.httpsOnly.unwrap().nullish(),
    allowCorsPreflight: shape.allowCorsPreflight.unwrap().nullish(),
    forwardToOtherHosts: shape.forwardToOtherHosts.unwrap().nullish(),
    sshIPWhitelist: shape.sshIPWhitelist.unwrap().nullish(),
    ingressIPWhitelist: shape.ingressIPWhitelist.unwrap().nullish(),
    liveHeaderModifications: shape.liveHeaderModifications.unwrap().nullish(),
    authMode: shape.authMode.unwrap().nullish(),
    authorizedKeys: shape.authorizedKeys.unwrap().nullish(),
    target: shape.target.unwrap().nullish(),
  })
  .superRefine(checkRules(FIELD_RULES), EVEN_SO)

/** Body of `PATCH …/tunnels/{t}`: a JSON merge patch (RFC 7396). */
export const PatchTunnelBody = z
  .object({ name: Name.optional(), config: ConfigPatch.optional() })
  .refine((body) => Object.values(body).some((value) => value !== undefined), {
    path: ['body'],
    error: 'must have at least one of name, config',
    // A body of unknown fields alone is told of these.
    when: ({ issues }) => issues.length === 0,
  })
  .meta({ id: 'PatchTunnel', examples: [{ config: { httpsOnly: true } }] })
export type PatchTunnelBody = z.output<typeof PatchTunnelBody>
