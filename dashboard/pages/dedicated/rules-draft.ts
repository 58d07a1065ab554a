import type { FirewallRule } from '../../api/types.ts'

/** Firewall rule in a form. `key` identifies the row while other rows come and go. */
export interface RuleDraft {
  readonly key: number
  readonly cidr: string
  readonly description: string
}

let lastKey = 0

/** Returns a row of the form. */
export const draftRule = ({ cidr = '', description = '' }: Partial<FirewallRule> = {}): RuleDraft => ({
  key: ++lastKey,
  cidr,
  description,
})

/** Returns the rows that hold something. */
export const filledRules = (rows: readonly RuleDraft[]): readonly RuleDraft[] =>
  rows.filter(({ cidr, description }) => cidr.trim() !== '' || description.trim() !== '')

/** Returns the rules of filled rows. Invalid ones stay in it, so that the API names them in its error. */
export const rulesOf = (rows: readonly RuleDraft[]): FirewallRule[] =>
  filledRules(rows).map(({ cidr, description }) => ({
    cidr: cidr.trim(),
    ...(description.trim() !== '' && { description: description.trim() }),
  }))

const PASTED = /^([^\s,;#]+)[\s,;#]*(.*)$/

/** Returns the rows of a pasted text: an address or range at the start of each line, a description after it. */
export const pastedRules = (text: string): readonly RuleDraft[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .map((line) => {
      const [, cidr = line, description = ''] = PASTED.exec(line) ?? []
      return draftRule({ cidr, description })
    })

/** Rules of a database; null: every source. */
type Rules = readonly FirewallRule[] | null

/** Returns whether two lists have the same rules in the same order. */
export function isSameRules(one: Rules, other: Rules): boolean {
  if (!one || !other) return one === other
  return (
    one.length === other.length &&
    one.every(
      ({ cidr, description }, index) => cidr === other[index]?.cidr && (description ?? '') === (other[index].description ?? ''),
    )
  )
}
