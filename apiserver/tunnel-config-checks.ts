import type { FieldError } from '../crds/errors.ts'
import { fieldPath } from '../crds/field-errors.ts'
import { isWholeKey } from '../crds/ssh-public-key.ts'
import {
  AGREEMENT_RULES,
  ENTRY_RULE,
  isAddressOrRange,
  isReservedHeader,
  RESERVED_RULE,
  TunnelConfig,
} from '../crds/tunnel-config.ts'
import { invalidRequest } from './errors.ts'
import type { BodyCheck } from './route.ts'

/** A rule over each item of a list of a config, or over one member of each, that no schema can say. */
interface ItemRule {
  readonly list: keyof TunnelConfig
  readonly member?: string
  readonly message: string
  readonly holds: (text: string) => boolean
}

const ITEM_RULES: readonly ItemRule[] = [
  { list: 'sshIPWhitelist', message: ENTRY_RULE, holds: isAddressOrRange },
  { list: 'ingressIPWhitelist', message: ENTRY_RULE, holds: isAddressOrRange },
  { list: 'liveHeaderModifications', member: 'name', message: RESERVED_RULE, holds: (name) => !isReservedHeader(name) },
  // A key that can never log in is refused where somebody reads the refusal; the edge passes over one that came another way.
  {
    list: 'authorizedKeys',
    message: 'must be a whole key of the type that it names, RSA with 2048 bits or more',
    holds: isWholeKey,
  },
]

/** As it came: whatever its schema refuses may be in it. */
type Given = Readonly<Record<string, unknown>>

const isGiven = (value: unknown): value is Given => typeof value === 'object' && value !== null && !Array.isArray(value)
const configOf = (body: object): Given => ('config' in body && isGiven(body.config) ? body.config : {})

const memberOf = (item: unknown, member: string): unknown => (isGiven(item) ? item[member] : undefined)

/** What is no text is the schema's to refuse. */
function brokenBy({ list, member, message, holds }: ItemRule, items: readonly unknown[]): FieldError[] {
  return items.flatMap((item, index) => {
    const text = member === undefined ? item : memberOf(item, member)
    if (typeof text !== 'string' || holds(text)) return []
    return [{ field: fieldPath(['config', list, index, ...(member === undefined ? [] : [member])]), message }]
  })
}

/** Each wrong item of the config in a body, or in a patch. The items of a list that is too long are not looked at. */
export const checkItems: BodyCheck = (body, named) => {
  const config = configOf(body)
  return ITEM_RULES.flatMap((rule) => {
    const items = config[rule.list]
    return Array.isArray(items) && !named.has(`config.${rule.list}`) ? brokenBy(rule, items) : []
  }).filter(({ field }) => !named.has(field))
}

const DEFAULTS = TunnelConfig.parse({})

/** Fields of a config, null or left out for a default, that do not agree with others. Of those that are `named` nothing is known, not even their types. */
function disagreements(given: Given, named: ReadonlySet<string>): FieldError[] {
  const set = Object.entries(given).filter(([, value]) => value !== null && value !== undefined)
  const config = { ...DEFAULTS, ...Object.fromEntries(set) }
  return AGREEMENT_RULES.map((rule) => ({ ...rule, field: rule.field.slice('spec.'.length) }))
    .filter(({ field, holds }) => !named.has(field) && !holds({ config } as never, { name: '' }))
    .map(({ field, message }) => ({ field, message }))
}

/** All that is wrong of the config in the body of a creation, beside what its schema says. */
export const checkConfig: BodyCheck = (body, named) => [...checkItems(body, named), ...disagreements(configOf(body), named)]

/**
 * For a patch of a config, which has to agree with what it leaves as it is. A store would refuse it too, in words of its own.
 * @throws ApiError `invalid_request` in the words of {@link checkConfig}
 */
export function requireAgreement(now: object, patch: object): void {
  const errors = disagreements({ ...now, ...patch }, new Set())
  if (errors.length > 0) throw invalidRequest(errors)
}
