import { useEffect, useState } from 'preact/hooks'
import { signIn } from '../api/client.ts'
import { otherMessages } from '../field-messages.ts'
import { Failure } from '../parts/basics.tsx'
import { TextField } from '../parts/form.tsx'
import { useAction } from '../parts/use-data.ts'
import { Brand } from '../shell.tsx'

interface SignInProps {
  readonly message: string | undefined
  readonly onSignedIn: () => Promise<void>
}

export function SignIn({ message, onSignedIn }: SignInProps) {
  const [token, setToken] = useState('')
  const { isBusy, failure, run } = useAction()
  useEffect(() => void (document.title = 'Sign in · Mooring'), [])
  const submit = async (event: Event) => {
    event.preventDefault()
    if (await run(() => signIn({ token: token.trim() }))) await onSignedIn()
  }
  const rest = otherMessages(failure, ['token'])
  return (
    <main class="alone">
      <form class="card sign-in" onSubmit={submit}>
        <Brand />
        <h1>Sign in</h1>
        {message !== undefined && !failure && (
          <p class="note accent" role="status">
            {message}
          </p>
        )}
        <TextField
          {...{ label: 'Token', field: 'token', isSecret: true, required: true, failure }}
          {...{ value: token, onText: setToken }}
          hint="A token of your identity provider, or an API token that begins with moor_."
        />
        {rest !== undefined && <Failure failure={{ message: rest }} />}
        <button type="submit" class="button primary wide" disabled={isBusy}>
          {isBusy ? 'Signing in …' : 'Sign in'}
        </button>
        <p class="hint">
          Does Mooring run on this machine? <code>npm start</code> prints a link that signs you in, and{' '}
          <code>.mooring/token</code> holds a token.
        </p>
      </form>
    </main>
  )
}
