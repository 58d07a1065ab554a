import type { ApiFailure } from '../../api/client.ts'
import { messagesOf } from '../../field-messages.ts'
import { Errors } from '../../parts/form.tsx'
import { Icon } from '../../parts/icons.tsx'
import type { Header } from './settings-draft.ts'

interface HeaderRowsProps {
  readonly headers: readonly Header[]
  readonly failure: ApiFailure | undefined
  readonly onChange: (headers: readonly Header[]) => void
}

const NEW: Header = { type: 'request', name: '', value: '' }

/** Headers that the edge sets or removes, one per row. */
export function HeaderRows({ headers, failure, onChange }: HeaderRowsProps) {
  const messages = messagesOf(failure, 'config.liveHeaderModifications')
  const set = (index: number, change: Partial<Header>) =>
    onChange(headers.map((header, at) => (at === index ? { ...header, ...change } : header)))
  return (
    <fieldset class="headers">
      <legend>Headers to set</legend>
      <p class="hint">An empty value removes the header.</p>
      {headers.map((header, index) => (
        <div class="header-row" key={index}>
          <select
            {...{ 'aria-label': `Message of header ${index + 1}`, value: header.type }}
            onChange={({ currentTarget }) => set(index, { type: currentTarget.value === 'response' ? 'response' : 'request' })}
          >
            <option value="request">request</option>
            <option value="response">response</option>
          </select>
          <input
            {...{ 'aria-label': `Name of header ${index + 1}`, value: header.name, placeholder: 'X-Name', spellcheck: false }}
            onInput={({ currentTarget }) => set(index, { name: currentTarget.value })}
          />
          <input
            {...{ 'aria-label': `Value of header ${index + 1}`, value: header.value, placeholder: 'value', spellcheck: false }}
            onInput={({ currentTarget }) => set(index, { value: currentTarget.value })}
          />
          <button type="button" class="button small quiet" onClick={() => onChange(headers.filter((_, at) => at !== index))}>
            <Icon name="trash" />
            <span class="hidden">Remove header {index + 1}</span>
          </button>
        </div>
      ))}
      <Errors messages={messages} />
      <button type="button" class="button small" onClick={() => onChange([...headers, NEW])}>
        <Icon name="plus" />
        Add a header
      </button>
    </fieldset>
  )
}
