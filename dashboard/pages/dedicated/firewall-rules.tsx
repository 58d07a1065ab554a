import { useId } from 'preact/hooks'
import type { ApiFailure } from '../../api/client.ts'
import { messagesOf } from '../../field-messages.ts'
import { Errors, Switch } from '../../parts/form.tsx'
import { Icon } from '../../parts/icons.tsx'
import { draftRule, pastedRules, type RuleDraft } from './rules-draft.ts'

interface FirewallRulesProps {
  /** Null: every source. */
  readonly rows: readonly RuleDraft[] | null
  /** Keys of the rows that were sent, in the order of the API's errors. */
  readonly sent: readonly number[]
  readonly failure: ApiFailure | undefined
  readonly onChange: (rows: readonly RuleDraft[] | null) => void
}

/** Field of the API with the list; errors about it are shown here. */
export const RULES = 'firewallRules'

/** Firewall rules, one address or range per row, each with the API's errors about it. */
export function FirewallRules({ rows: listed, sent, failure, onChange }: FirewallRulesProps) {
  const id = useId()
  const rows = listed ?? []
  const ofList = (failure?.details ?? []).filter(({ field }) => field === RULES).map(({ message }) => `This list ${message}.`)
  return (
    <fieldset class="headers">
      <legend>Firewall rules</legend>
      <Switch
        {...{ label: 'Only from these addresses', checked: listed !== null, onSwitch: (on) => onChange(on ? [] : null) }}
        hint="Off: from every address, unless the plan is closed by default. On: from the addresses or CIDR ranges below, one per row; without any, from nowhere. A pasted list adds a row for each line. Pods of the organization may always connect."
      />
      {rows.map((row, index) => (
        <Rule
          key={row.key}
          {...{ row, number: index + 1, messages: errorsOf(failure, sent.indexOf(row.key)), id: `${id}-${row.key}` }}
          onReplace={(replaced) => onChange(rows.toSpliced(index, 1, ...replaced))}
        />
      ))}
      <Errors messages={ofList} />
      <button type="button" class="button small" onClick={() => onChange([...rows, draftRule()])}>
        <Icon name="plus" />
        Add a rule
      </button>
    </fieldset>
  )
}

/** Returns the errors about a field of a rule; `''` is the rule itself. */
type RowErrors = (field: '' | 'cidr' | 'description') => readonly string[]

const errorsOf =
  (failure: ApiFailure | undefined, index: number): RowErrors =>
  (field) =>
    index < 0 ? [] : messagesOf(failure, `${RULES}[${index}]${field === '' ? '' : `.${field}`}`)

interface RuleProps {
  readonly row: RuleDraft
  readonly number: number
  readonly messages: RowErrors
  readonly id: string
  /** Replaces the row by these rows; an empty list removes it. */
  readonly onReplace: (rows: readonly RuleDraft[]) => void
}

function Rule({ row, number, messages, id, onReplace }: RuleProps) {
  const ofCidr = [...messages(''), ...messages('cidr')]
  const ofDescription = messages('description')
  const errors = [...ofCidr, ...ofDescription]
  const aria = (own: readonly string[]) => (own.length > 0 ? ({ 'aria-invalid': 'true', 'aria-describedby': id } as const) : {})
  const paste = (event: ClipboardEvent) => {
    const text = event.clipboardData?.getData('text/plain') ?? ''
    if (!text.trim().includes('\n')) return
    event.preventDefault()
    onReplace(pastedRules(text))
  }
  const set = (change: Partial<RuleDraft>) => onReplace([{ ...row, ...change }])
  return (
    <div class="rule">
      <div class="rule-row">
        <input
          {...{ 'aria-label': `Address of rule ${number}`, value: row.cidr, placeholder: '203.0.113.0/24', class: 'mono' }}
          {...{ ...aria(ofCidr), spellcheck: false, autocomplete: 'off', onPaste: paste }}
          onInput={({ currentTarget }) => set({ cidr: currentTarget.value })}
        />
        <input
          {...{ 'aria-label': `Description of rule ${number}`, value: row.description, placeholder: 'Description (optional)' }}
          {...{ ...aria(ofDescription), autocomplete: 'off' }}
          onInput={({ currentTarget }) => set({ description: currentTarget.value })}
        />
        <button type="button" class="button small quiet" onClick={() => onReplace([])}>
          <Icon name="trash" />
          <span class="hidden">Remove rule {number}</span>
        </button>
      </div>
      <Errors {...{ id, messages: errors }} />
    </div>
  )
}
