import { z } from 'zod'
import { ruleMessage } from '../../shared/zod-messages.ts'
import { DISPLAY_NAME, DISPLAY_NAME_RULE } from '../../crds/tunnel.ts'
import { TunnelConfig } from '../../crds/tunnel-config.ts'
import { TTL_SECONDS } from '../instances/instance-body.ts'
import { EXAMPLE } from '../openapi/openapi-examples.ts'

const Name = z.string(ruleMessage(DISPLAY_NAME_RULE)).regex(DISPLAY_NAME, DISPLAY_NAME_RULE)
const ttlRule = `must be an integer from ${TTL_SECONDS.min} to ${TTL_SECONDS.max}`

/** Body of `POST …/tunnels` (contract, "Tunnel"). Whether the region is there is not the schema's to say: that is 422, not 400. */
export const CreateTunnelBody = z
  .object({
    name: Name.describe('Label of your choice; need not be unique.'),
    regionId: z.int().describe('`regionId` of a region in `GET /v1/regions`.'),
    config: TunnelConfig.optional().describe('Its settings; each has a default.'),
    ttl: z.int(ttlRule).min(TTL_SECONDS.min, ttlRule).max(TTL_SECONDS.max, ttlRule).optional().describe('Seconds to live.'),
  })
  .meta({ id: 'CreateTunnel', examples: [{ name: 'web', regionId: EXAMPLE.regionId, config: { httpsOnly: true } }] })
export type CreateTunnelBody = z.output<typeof CreateTunnelBody>

const { shape } = TunnelConfig

/**
 * A merge patch of a config: lists are replaced whole, null puts the default back. What several fields have to agree on is weighed with those
 * that are not in the patch (patch-tunnel.ts).
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

/** Body of `PATCH …/tunnels/{t}`: a JSON merge patch (RFC 7396), so that an empty one changes nothing. */
export const PatchTunnelBody = z
  .object({
    name: Name.optional(),
    config: ConfigPatch.nullish().describe('What changes of its settings; null puts back the default of each.'),
  })
  .meta({ id: 'PatchTunnel', examples: [{ config: { httpsOnly: true } }] })
export type PatchTunnelBody = z.output<typeof PatchTunnelBody>
