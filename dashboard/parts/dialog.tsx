import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { Failure } from './basics.tsx'
import { TextField } from './form.tsx'
import { useAction } from './use-data.ts'

interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
}

/** Modal dialog; the browser keeps the focus in it, closes it by Escape and gives the focus back. */
export function Dialog({ title, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const element = dialog.current
    element?.showModal()
    return () => element?.close()
  }, [])
  return (
    <dialog ref={dialog} aria-labelledby={id} onClose={onClose}>
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  )
}

interface ConfirmProps {
  readonly title: string
  /** Label of the button that does it. */
  readonly verb: string
  readonly danger?: boolean
  /** Text that the user has to type first, such as the name of what is deleted. */
  readonly typed?: string
  readonly children: ComponentChildren
  readonly onConfirm: () => Promise<unknown>
  readonly onClose: () => void
}

/** Asks before a change that cannot be undone. It stays open, with the reason, when the change fails. */
export function Confirm({ title, verb, danger = true, typed = '', children, onConfirm, onClose }: ConfirmProps) {
  const { isBusy, failure, run } = useAction()
  const [text, setText] = useState('')
  const isAllowed = text === typed
  const confirm = async (event: Event) => {
    event.preventDefault()
    if (isAllowed && (await run(onConfirm))) onClose()
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={confirm}>
        {children}
        {typed !== '' && <TextField {...{ label: `Type ${typed} to confirm`, field: '', value: text, onText: setText }} />}
        <Failure failure={failure} />
        <div class="buttons">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class={danger ? 'button danger' : 'button primary'} disabled={isBusy || !isAllowed}>
            {isBusy ? 'Please wait …' : verb}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
