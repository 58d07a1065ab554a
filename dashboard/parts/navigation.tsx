import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'

const listeners = new Set<() => void>()

/** Opens another page of the dashboard. */
export function navigate(path: string, { replace = false } = {}): void {
  if (replace) history.replaceState(null, '', path)
  else history.pushState(null, '', path)
  listeners.forEach((listener) => listener())
  window.scrollTo(0, 0)
}

/** Returns the path of the current page, and renders again when it changes. */
export function usePath(): string {
  const [path, setPath] = useState(location.pathname)
  useEffect(() => {
    const update = () => setPath(location.pathname)
    listeners.add(update)
    addEventListener('popstate', update)
    return () => {
      listeners.delete(update)
      removeEventListener('popstate', update)
    }
  }, [])
  return path
}

interface LinkProps {
  readonly to: string
  readonly class?: string | undefined
  readonly current?: boolean | undefined
  readonly children: ComponentChildren
}

/** Link to another page of the dashboard, without loading the document again. */
export function Link({ to, class: name, current, children }: LinkProps) {
  const follow = (event: MouseEvent) => {
    // A new tab or window is up to the browser.
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button !== 0) return
    event.preventDefault()
    navigate(to)
  }
  return (
    <a href={to} class={name} onClick={follow} aria-current={current ? 'page' : undefined}>
      {children}
    </a>
  )
}
