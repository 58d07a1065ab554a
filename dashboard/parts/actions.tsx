import type { ComponentChildren } from 'preact'

/** Button that opens a question. */
export const AskButton = ({ label, onClick }: { label: string; onClick: () => void }) => (
  <button type="button" class="button" onClick={onClick}>
    {label} …
  </button>
)

/** Row of a list of actions: a button, and what it does. */
export const ActionRow = ({ hint, children }: { hint: string; children: ComponentChildren }) => (
  <li>
    {children}
    <span class="sub">{hint}</span>
  </li>
)
