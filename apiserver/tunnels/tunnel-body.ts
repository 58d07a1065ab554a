import { z } from 'zod'
import { ruleMessage } from '../../shared/field-errors.ts'
import { DISPLAY_NAME, DISPLAY_NAME_RULE } from '../../crds/tunnel.ts'
import {
  brokenItems,
  HeaderModification,
  isTargetAllowed,
  ITEM_RULES,
  type ItemRule,
  KEY_RULE,
  TARGET_RULE,
  TunnelConfig,
} from '../../crds/tunnel-config.ts'
import { TTL_SECONDS } from '../instances/instance-body.ts'
import { EXAMPLE } from '../openapi/openapi-schemas.ts'
import type { FieldError } from '../../shared/errors.ts'
import { type Fields, isFields } from '../../crds/formats/fields.ts'
import { invalidRequest } from '../http/errors.ts'
import type { BodyCheck } from '../http/route.ts'

const Name = z.string(ruleMessage(DISPLAY_NAME_RULE)).regex(DISPLAY_NAME, DISPLAY_NAME_RULE)
const ttlRule = `must be an integer from ${TTL_SECONDS.min} to ${TTL_SECONDS.max}`

/** `config` of a request. It takes values of headers, and the API puts them into a Secret. */
const ConfigBody = TunnelConfig.extend({
  liveHeaderModifications: z.array(HeaderModification).max(32).default([]).describe('Headers to set or remove.'),
})

/** Body of `POST …/tunnels`. The schema does not check whether the region exists: that is 422, not 400. */
export const CreateTunnelBody = z
  .object({
    name: Name.describe('Label of your choice; need not be unique.'),
    regionId: z
      .int(ruleMessage('must be a whole number: the regionId of a region in GET /v1/regions'))
      .describe('`regionId` of a region in `GET /v1/regions`.'),
    config: ConfigBody.optional().describe('Settings; each has a default.'),
    ttl: z.int(ttlRule).min(TTL_SECONDS.min, ttlRule).max(TTL_SECONDS.max, ttlRule).optional().describe('Seconds to live.'),
  })
  .meta({ id: 'CreateTunnel', examples: [{ name: 'web', regionId: EXAMPLE.regionId, config: { httpsOnly: true } }] })
export type CreateTunnelBody = z.output<typeof CreateTunnelBody>

const { shape } = ConfigBody

/**
 * Merge patch of a config: lists are replaced as a whole, null restores the default. {@link requireAllowedTarget} checks the rules over several fields
 * against the patched config.
 */
const ConfigPatch = z.object({
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

/** Body of `PATCH …/tunnels/{t}`: a JSON merge patch (RFC 7396); an empty one changes nothing. */
export const PatchTunnelBody = z
  .object({
    name: Name.optional(),
    config: ConfigPatch.nullish().describe('Settings to change; null restores all defaults.'),
  })
  .meta({ id: 'PatchTunnel', examples: [{ config: { httpsOnly: true } }] })
export type PatchTunnelBody = z.output<typeof PatchTunnelBody>

const RULES: readonly ItemRule[] = [...ITEM_RULES, KEY_RULE]

/** Returns the raw config of a body, which may contain values that its schema rejects. */
const configOf = (body: object): Fields => ('config' in body && isFields(body.config) ? body.config : {})

/** Returns an error for each invalid item in the lists of a config. Lists that already have an error are skipped. */
function wrongItems(config: Fields, named: ReadonlySet<string>): FieldError[] {
  return RULES.flatMap((rule) => {
    const [field, items] = [`config.${rule.list}`, config[rule.list]]
    if (!Array.isArray(items) || named.has(field)) return []
    const rest = rule.member === undefined ? '' : `.${rule.member}`
    const messageAt = (index: number) => rule.messageOf?.(String(items[index])) ?? rule.message
    return brokenItems(rule, items).map((index) => ({ field: `${field}[${index}]${rest}`, message: messageAt(index) }))
  })
}

/** Returns an error for a target on another host unless `forwardToOtherHosts` is `true`. */
function wrongTarget({ target, forwardToOtherHosts }: Fields): FieldError[] {
  if (typeof target !== 'string' || isTargetAllowed({ target, forwardToOtherHosts: forwardToOtherHosts === true })) return []
  return [{ field: 'config.target', message: TARGET_RULE.message }]
}

/** Checks the config of a creation for errors that its schema cannot express. */
export const checkNewConfig: BodyCheck = (body, named) => [...wrongItems(configOf(body), named), ...wrongTarget(configOf(body))]

/** Checks the config of a patch, without the rules that need the current config: see {@link requireAllowedTarget}. */
export const checkConfigPatch: BodyCheck = (body, named) => {
  const config = configOf(body)
  return [...wrongItems(config, named), ...('forwardToOtherHosts' in config ? wrongTarget(config) : [])]
}

type Targeted = Pick<TunnelConfig, 'target' | 'forwardToOtherHosts'>

/**
 * Checks the target of a patched config, so that the error is the same as in {@link checkNewConfig} instead of the store's.
 * @throws ApiError `invalid_request`
 */
export function requireAllowedTarget(now: Targeted, patch: NonNullable<PatchTunnelBody['config']>): void {
  const errors = wrongTarget({ ...now, ...patch })
  if (errors.length > 0) throw invalidRequest(errors)
}
