import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import { messagesOf } from '../field-messages.ts'
import type { ApiFailure } from '../api/client.ts'

/** Ids and state that a label, its control and its messages share. */
interface FieldProps {
  readonly label: string
  /** Name of the field in the API, whose errors show here. */
  readonly field: string
  readonly failure?: ApiFailure | undefined
  readonly hint?: ComponentChildren
}

interface Control {
  readonly id: string
  readonly 'aria-describedby': string | undefined
  readonly 'aria-invalid': 'true' | undefined
}

/** Errors of a field, read out when they appear. */
export const Errors = ({ id, messages }: { id?: string | undefined; messages: readonly string[] }) =>
  messages.length === 0 ? null : (
    <div role="alert" id={id}>
      <ul class="errors">
        {messages.map((message) => (
          <li key={message}>{message}</li>
        ))}
      </ul>
    </div>
  )

/** Label, control, hint and the API's errors about the field. */
function Field({ label, field, failure, hint, children }: FieldProps & { children: (control: Control) => ComponentChildren }) {
  const id = useId()
  const messages = messagesOf(failure, field)
  const described = [hint !== undefined && `${id}-hint`, messages.length > 0 && `${id}-error`].filter((name) => name !== false)
  const control: Control = {
    id,
    'aria-describedby': described.length > 0 ? described.join(' ') : undefined,
    'aria-invalid': messages.length > 0 ? 'true' : undefined,
  }
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(control)}
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      <Errors id={`${id}-error`} messages={messages} />
    </div>
  )
}

interface TextProps extends FieldProps {
  readonly value: string
  readonly onText: (text: string) => void
  readonly placeholder?: string
  readonly isSecret?: boolean
  readonly required?: boolean
  /** Number of lines of a text area; one line when absent. */
  readonly rows?: number
}

export function TextField({ value, onText, placeholder, isSecret = false, required, rows, ...field }: TextProps) {
  const common = { value, placeholder, required, spellcheck: false, autocomplete: 'off' } as const
  const onInput = ({ currentTarget }: { readonly currentTarget: { readonly value: string } }) => onText(currentTarget.value)
  return (
    <Field {...field}>
      {(control) => {
        if (rows !== undefined) return <textarea {...control} {...common} rows={rows} onInput={onInput} />
        if (isSecret) return <input {...control} {...common} type="password" onInput={onInput} />
        return <input {...control} {...common} type="text" onInput={onInput} />
      }}
    </Field>
  )
}

interface ChoiceProps extends FieldProps {
  readonly value: string
  readonly onText: (text: string) => void
  readonly options: readonly (readonly [value: string, label: string])[]
}

export function Choice({ value, onText, options, ...field }: ChoiceProps) {
  return (
    <Field {...field}>
      {(control) => (
        <select {...control} value={value} onChange={({ currentTarget }) => onText(currentTarget.value)}>
          {options.map(([name, label]) => (
            <option key={name} value={name}>
              {label}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}

interface SwitchProps {
  readonly label: string
  readonly hint: string
  readonly checked: boolean
  readonly onSwitch: (on: boolean) => void
}

export function Switch({ label, hint, checked, onSwitch }: SwitchProps) {
  const id = useId()
  return (
    <div class="switch">
      <input
        {...{ id, type: 'checkbox', role: 'switch', checked, 'aria-describedby': `${id}-hint` }}
        onChange={({ currentTarget }) => onSwitch(currentTarget.checked)}
      />
      <div>
        <label for={id}>{label}</label>
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      </div>
    </div>
  )
}
