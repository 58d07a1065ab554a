import { z } from 'zod'
import { HeaderModification, TunnelConfig } from '../../crds/tunnel-config.ts'

const HeaderView = HeaderModification.extend({
  value: z
    .string()
    .nullable()
    .describe(
      'Value that replaces all existing ones; an empty value removes the header. Null for viewers, because it may be a secret.',
    ),
})

/** `config` of the REST API (docs/api.md, "Tunnels"); values of headers are null for viewers. */
export const TunnelConfigView = TunnelConfig.extend({
  liveHeaderModifications: z.array(HeaderView).describe('Headers to set or remove.'),
})
export type TunnelConfigView = z.output<typeof TunnelConfigView>

/** Renders a config. `readsSecrets`: whether the caller has the right to read secrets, such as the values of headers. Pure. */
export function tunnelConfigView(config: TunnelConfig, readsSecrets: boolean): TunnelConfigView {
  const complete = config as z.output<typeof TunnelConfig>
  if (readsSecrets) return complete
  return { ...complete, liveHeaderModifications: complete.liveHeaderModifications.map((item) => ({ ...item, value: null })) }
}
