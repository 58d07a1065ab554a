import { z } from 'zod'
import { HeaderModification, TunnelConfig } from '../../crds/tunnel-config.ts'

const HeaderView = HeaderModification.extend({
  value: z
    .string()
    .nullable()
    .describe('Its value, in place of any that there are; empty: the header is removed. Null for viewers: it may be a secret.'),
})

/** `config` of the REST API (surface, section 5), complete but for what a viewer may not read. */
export const TunnelConfigView = TunnelConfig.extend({
  liveHeaderModifications: z.array(HeaderView).describe('Headers to set or remove.'),
})
export type TunnelConfigView = z.output<typeof TunnelConfigView>

/** Renders a config. `readsSecrets`: whether the caller may read the values of headers, as the credentials of a database. Pure. */
export function tunnelConfigView(config: TunnelConfig, readsSecrets: boolean): TunnelConfigView {
  const complete = config as z.output<typeof TunnelConfig>
  if (readsSecrets) return complete
  return { ...complete, liveHeaderModifications: complete.liveHeaderModifications.map((item) => ({ ...item, value: null })) }
}
