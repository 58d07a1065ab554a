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

/** The config in a body, as it came: whatever its schema refuses may be in it. */
const configOf = (body: object): Fields => ('config' in body && isFields(body.config) ? body.config : {})

/** Each wrong item of the lists of a config. Those of a list that is too long are not looked at. */
function wrongItems(config: Fields, named: ReadonlySet<string>): FieldError[] {
  return RULES.flatMap((rule) => {
    const [field, items] = [`config.${rule.list}`, config[rule.list]]
    if (!Array.isArray(items) || named.has(field)) return []
    const rest = rule.member === undefined ? '' : `.${rule.member}`
    return brokenItems(rule, items).map((index) => ({ field: `${field}[${index}]${rest}`, message: rule.message }))
  })
}

/** A target that the config does not allow: nothing but `true` lets it be elsewhere. */
function wrongTarget({ target, forwardToOtherHosts }: Fields): FieldError[] {
  if (typeof target !== 'string' || isTargetAllowed({ target, forwardToOtherHosts: forwardToOtherHosts === true })) return []
  return [{ field: 'config.target', message: TARGET_RULE.message }]
}

/** All that is wrong of the config in the body of a creation, beside what its schema says. */
export const checkNewConfig: BodyCheck = (body, named) => [...wrongItems(configOf(body), named), ...wrongTarget(configOf(body))]

/** The same of a patch, as far as it can be told without the config that it changes: see {@link requireAllowedTarget}. */
export const checkConfigPatch: BodyCheck = (body, named) => {
  const config = configOf(body)
  return [...wrongItems(config, named), ...('forwardToOtherHosts' in config ? wrongTarget(config) : [])]
}

type Targeted = Pick<TunnelConfig, 'target' | 'forwardToOtherHosts'>

/**
 * Weighs the target of a config as a patch leaves it. A store would refuse it too, in words of its own.
 * @throws ApiError `invalid_request` in the words of {@link checkNewConfig}
 */
export function requireAllowedTarget(now: Targeted, patch: NonNullable<PatchTunnelBody['config']>): void {
  const errors = wrongTarget({ ...now, ...patch })
  if (errors.length > 0) throw invalidRequest(errors)
}
