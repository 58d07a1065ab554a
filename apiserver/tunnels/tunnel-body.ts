import { z } from 'zod'
import { ruled } from '../../shared/plain-words.ts'
import { DISPLAY_NAME, DISPLAY_NAME_RULE } from '../../crds/tunnel.ts'
import { TunnelConfig } from '../../crds/tunnel-config.ts'
import { TTL_SECONDS } from '../instances/instance-body.ts'
import { EXAMPLE } from '../openapi/openapi-examples.ts'

const Name = z.string(ruled(DISPLAY_NAME_RULE)).regex(DISPLAY_NAME, DISPLAY_NAME_RULE)
const ttlRule = `must be an integer from ${TTL_SECONDS.min} to ${TTL_SECONDS.max}`

/** Body of `POST …/tunnels`. The schema does not check whether the region exists: that is 422, not 400. */
export const CreateTunnelBody = z
  .object({
    name: Name.describe('Label of your choice; need not be unique.'),
    regionId: z.int().describe('`regionId` of a region in `GET /v1/regions`.'),
    config: TunnelConfig.optional().describe('Settings; each has a default.'),
    ttl: z.int(ttlRule).min(TTL_SECONDS.min, ttlRule).max(TTL_SECONDS.max, ttlRule).optional().describe('Seconds to live.'),
  })
  .meta({ id: 'CreateTunnel', examples: [{ name: 'web', regionId: EXAMPLE.regionId, config: { httpsOnly: true } }] })
export type CreateTunnelBody = z.output<typeof CreateTunnelBody>

const { shape } = TunnelConfig

/**
 * Merge patch of a config: lists are replaced as a whole, null restores the default. Rules over several fields are checked against the patched
 * config (tunnel-config-checks.ts).
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
