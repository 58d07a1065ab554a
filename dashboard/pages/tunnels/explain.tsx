import { useState } from 'preact/hooks'
import { call } from '../../api/client.ts'
import type { Explanation } from '../../api/types.ts'
import { otherMessages } from '../../field-messages.ts'
import { Card, Failure, Pill } from '../../parts/basics.tsx'
import { Choice, TextField } from '../../parts/form.tsx'
import { useAction } from '../../parts/use-data.ts'
import { apiPath } from '../../router.ts'
import type { TunnelTabProps } from './tab-props.ts'

const KINDS = [
  ['request', 'a request of a visitor'],
  ['ssh', 'an SSH login'],
] as const
const SCHEMES = [
  ['https', 'https'],
  ['http', 'http'],
] as const
const MODES = [
  ['key', 'a key'],
  ['token', 'a password'],
] as const

const START = { kind: 'request', sourceIp: '203.0.113.7', scheme: 'https', method: 'GET', path: '/', authMethod: 'key' }

/** Form that asks what the edge would decide, and the decision step by step. */
export function ExplainTab({ access, tunnel }: TunnelTabProps) {
  const [asked, setAsked] = useState(START)
  const [explanation, setExplanation] = useState<Explanation>()
  const { isBusy, failure, run } = useAction()
  const isSsh = asked.kind === 'ssh'
  const set = (name: keyof typeof START) => (value: string) => setAsked({ ...asked, [name]: value })
  const submit = async (event: Event) => {
    event.preventDefault()
    const { sourceIp, scheme, method, path, authMethod } = asked
    const body = isSsh ? { ssh: { sourceIp, authMethod } } : { sourceIp, scheme, method, path }
    setExplanation(undefined)
    await run(async () => {
      const { data } = await call<Explanation>('POST', apiPath(access, 'tunnels', tunnel.id, 'explain'), { body })
      setExplanation(data)
    })
  }
  const address = isSsh ? 'ssh.sourceIp' : 'sourceIp'
  const rest = otherMessages(failure, [address, 'method', 'path'])
  return (
    <div class="columns">
      <Card title="What would the edge do with …">
        <form onSubmit={submit}>
          <Choice {...{ label: 'Kind', field: 'kind', value: asked.kind, options: KINDS, onText: set('kind') }} />
          <TextField
            {...{
              label: 'From the address',
              field: address,
              failure,
              value: asked.sourceIp,
              onText: set('sourceIp'),
              required: true,
            }}
          />
          {isSsh ? (
            <Choice
              {...{ label: 'With', field: 'authMethod', value: asked.authMethod, options: MODES, onText: set('authMethod') }}
            />
          ) : (
            <>
              <Choice {...{ label: 'Scheme', field: 'scheme', value: asked.scheme, options: SCHEMES, onText: set('scheme') }} />
              <TextField
                {...{ label: 'Method', field: 'method', failure, value: asked.method, onText: set('method'), required: true }}
              />
              <TextField {...{ label: 'Path', field: 'path', failure, value: asked.path, onText: set('path'), required: true }} />
            </>
          )}
          {rest !== undefined && <Failure failure={{ message: rest }} />}
          <button type="submit" class="button primary" disabled={isBusy}>
            Explain
          </button>
        </form>
      </Card>
      <div aria-live="polite">{explanation && <Steps explanation={explanation} isSsh={isSsh} />}</div>
    </div>
  )
}

function Steps({ explanation: { steps, answer }, isSsh }: { explanation: Explanation; isSsh: boolean }) {
  const passed = steps.every(({ verdict }) => verdict === 'pass')
  return (
    <Card title="Answer" actions={<Pill tone={passed ? 'good' : 'bad'}>{wordsOf(answer, { passed, isSsh })}</Pill>}>
      <ol class="verdicts">
        {steps.map(({ check, verdict, detail }) => (
          <li key={check} class={verdict}>
            <Pill tone={verdict === 'pass' ? 'good' : 'bad'}>{verdict}</Pill>
            <span>
              <strong>{check}</strong>
              <span class="sub break">{detail}</span>
            </span>
          </li>
        ))}
      </ol>
    </Card>
  )
}

function wordsOf({ status, reason }: Explanation['answer'], { passed, isSsh }: { passed: boolean; isSsh: boolean }): string {
  if (passed) return isSsh ? 'the login is accepted' : 'your server answers'
  return [status, reason].filter((part) => part !== null).join(' ')
}
