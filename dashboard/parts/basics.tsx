import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { ApiFailure } from '../api/client.ts'
import { fullTime, relative } from '../format.ts'
import { Icon, type IconName } from './icons.tsx'
import { useNow } from './use-data.ts'

export type Tone = 'good' | 'warn' | 'bad' | 'plain' | 'accent'

/** State in a word, with a dot: never by colour alone. */
export const Pill = ({ tone, live, children }: { tone: Tone; live?: boolean; children: ComponentChildren }) => (
  <span class={`pill ${tone}`}>
    <span class={live ? 'dot live' : 'dot'} aria-hidden="true" />
    {children}
  </span>
)

/** Time relative to now; the full time is its title. */
export function Time({ at }: { at: string }) {
  const now = useNow()
  return (
    <time dateTime={at} title={fullTime(at)}>
      {relative(at, now)}
    </time>
  )
}

export const Failure = ({ failure }: { failure: Pick<ApiFailure, 'message'> | undefined }) =>
  failure ? (
    <p class="note bad" role="alert">
      <Icon name="alert" />
      <span>{failure.message}</span>
    </p>
  ) : null

export const Loading = () => (
  <p class="loading" role="status">
    Loading …
  </p>
)

interface EmptyProps {
  readonly icon: IconName
  readonly title: string
  readonly children?: ComponentChildren
}

export const Empty = ({ icon, title, children }: EmptyProps) => (
  <div class="empty">
    <span class="empty-icon">
      <Icon name={icon} />
    </span>
    <h2>{title}</h2>
    {children}
  </div>
)

interface CardProps {
  readonly title: string
  readonly actions?: ComponentChildren
  readonly class?: string
  readonly children: ComponentChildren
}

export const Card = ({ title, actions, class: name = '', children }: CardProps) => (
  <section class={`card ${name}`} aria-label={title}>
    <header class="card-head">
      <h2>{title}</h2>
      {actions}
    </header>
    {children}
  </section>
)

/** Rows of names and values. */
export const Facts = ({ rows }: { rows: readonly (readonly [name: ComponentChildren, value: ComponentChildren])[] }) => (
  <dl class="facts">
    {rows.map(([name, value], index) => (
      <div key={index}>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
)

/** Button that copies a text, and says that it did. */
export function Copy({ text, label = 'Copy' }: { text: string; label?: ComponentChildren }) {
  const [state, setState] = useState<'' | 'copied' | 'failed'>('')
  useEffect(() => {
    if (state === '') return
    const timer = setTimeout(() => setState(''), 2_000)
    return () => clearTimeout(timer)
  }, [state])
  const copy = () => {
    navigator.clipboard.writeText(text).then(
      () => setState('copied'),
      () => setState('failed'),
    )
  }
  const said = { '': label, copied: 'Copied', failed: 'Select and copy it' }[state]
  return (
    <button type="button" class="button small" onClick={copy}>
      <Icon name={state === 'copied' ? 'check' : 'copy'} />
      <span aria-live="polite">{said}</span>
    </button>
  )
}

/** Text to copy as it is: a command, a connection string. */
export const Code = ({ text, label, wrap = true }: { text: string; label: string; wrap?: boolean }) => (
  <div class="code">
    <pre class={wrap ? 'wrap' : ''} tabIndex={0} aria-label={label}>
      <code>{text}</code>
    </pre>
    <Copy text={text} />
  </div>
)
