import type { Tunnel, TunnelConfig } from '../../api/types.ts'
import { linesOf } from '../../field-messages.ts'

export type Header = { readonly name: string; readonly value: string; readonly type: 'request' | 'response' }

/** Settings in the form. Lists are text, one item per line. */
export interface Draft {
  readonly name: string
  readonly httpsOnly: boolean
  readonly allowCorsPreflight: boolean
  readonly forwardToOtherHosts: boolean
  readonly authMode: string
  readonly target: string
  readonly sshIPWhitelist: string
  readonly ingressIPWhitelist: string
  readonly authorizedKeys: string
  readonly headers: readonly Header[]
}

export function draftOf({ name, config }: Pick<Tunnel, 'name' | 'config'>): Draft {
  const { httpsOnly, allowCorsPreflight, forwardToOtherHosts, authMode } = config
  return {
    name,
    httpsOnly,
    allowCorsPreflight,
    forwardToOtherHosts,
    authMode,
    target: config.target ?? '',
    sshIPWhitelist: config.sshIPWhitelist.join('\n'),
    ingressIPWhitelist: config.ingressIPWhitelist.join('\n'),
    authorizedKeys: config.authorizedKeys.join('\n'),
    headers: config.liveHeaderModifications.map(({ name, value, type }) => ({ name, type, value: value ?? '' })),
  }
}

type Patch = { name?: string; config?: Readonly<Record<string, unknown>> }

/** Returns the merge patch from a tunnel to a draft; undefined when nothing differs. */
export function changesOf(tunnel: Pick<Tunnel, 'name' | 'config'>, draft: Draft): Patch | undefined {
  const before: Readonly<Record<string, unknown>> = wanted(draftOf(tunnel))
  const changed = Object.entries(wanted(draft)).filter(
    ([field, value]) => JSON.stringify(value) !== JSON.stringify(before[field]),
  )
  const patch: Patch = {
    ...(draft.name !== tunnel.name && { name: draft.name }),
    ...(changed.length > 0 && { config: Object.fromEntries(changed) }),
  }
  return Object.keys(patch).length > 0 ? patch : undefined
}

/** Returns the config of a draft. Invalid values stay in it, so that the API names them in its error. */
function wanted({ headers, ...draft }: Draft): Readonly<Record<keyof TunnelConfig, unknown>> {
  const { httpsOnly, allowCorsPreflight, forwardToOtherHosts, authMode } = draft
  return {
    httpsOnly,
    allowCorsPreflight,
    forwardToOtherHosts,
    authMode,
    target: draft.target.trim() === '' ? null : draft.target.trim(),
    sshIPWhitelist: linesOf(draft.sshIPWhitelist),
    ingressIPWhitelist: linesOf(draft.ingressIPWhitelist),
    authorizedKeys: linesOf(draft.authorizedKeys),
    liveHeaderModifications: headers,
  }
}
