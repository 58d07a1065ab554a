import type { FieldError } from '../../shared/errors.ts'
import { type Fields, isFields } from '../../crds/formats/fields.ts'
import {
  brokenItems,
  isTargetAllowed,
  ITEM_RULES,
  type ItemRule,
  KEY_RULE,
  TARGET_RULE,
  type TunnelConfig,
} from '../../crds/tunnel-config.ts'
import { invalidRequest } from '../http/errors.ts'
import type { BodyCheck } from '../http/route.ts'
import type { PatchTunnelBody } from './tunnel-body.ts'

const RULES: readonly ItemRule[] = [...ITEM_RULES, KEY_RULE]

/** Returns the raw config of a body, which may contain values that its schema rejects. */
const configOf = (body: object): Fields => ('config' in body && isFields(body.config) ? body.config : {})

/** Returns an error for each invalid item in the lists of a config. Lists that already have an error are skipped. */
function wrongItems(config: Fields, named: ReadonlySet<string>): FieldError[] {
  return RULES.flatMap((rule) => {
    const [field, items] = [`config.${rule.list}`, config[rule.list]]
    if (!Array.isArray(items) || named.has(field)) return []
    const rest = rule.member === undefined ? '' : `.${rule.member}`
    return brokenItems(rule, items).map((index) => ({ field: `${field}[${index}]${rest}`, message: rule.message }))
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
