import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { Me } from './api/types.ts'
import { Icon, type IconName } from './parts/icons.tsx'
import { Link, navigate } from './parts/navigation.tsx'
import { pathOf, type Place, type Route } from './router.ts'

interface ShellProps {
  readonly me: Me
  readonly route: Route
  readonly onLeave: () => Promise<void>
  readonly children: ComponentChildren
}

/** Frame of every page: brand, namespace, navigation, user. */
export function Shell({ me, route, onLeave, children }: ShellProps) {
  const main = useRef<HTMLElement>(null)
  const isFirst = useRef(true)
  const key = [route.page, 'id' in route ? route.id : '', 'tab' in route ? route.tab : ''].join(' ')
  useEffect(() => {
    // A new page begins at its content for the keyboard and screen readers; the first one at the top of the document.
    if (!isFirst.current) main.current?.focus({ preventScroll: true })
    isFirst.current = false
  }, [key])
  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="side">
        <Brand />
        <NamespaceSwitch me={me} route={route} />
        {'organization' in route && <Navigation route={route} />}
        <div class="user">
          <span class="user-name" title={me.user}>
            {me.user}
          </span>
          <button type="button" class="button small quiet" onClick={onLeave}>
            <Icon name="door" />
            <span>Sign out</span>
          </button>
        </div>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        {children}
      </main>
    </div>
  )
}

export const Brand = () => (
  <div class="brand">
    <span class="brand-mark">
      <Icon name="anchor" />
    </span>
    Mooring
  </div>
)

function NamespaceSwitch({ me, route }: { me: Me; route: Route }) {
  if (me.namespaces.length === 0) return null
  const value = 'organization' in route ? `${route.organization}/${route.namespace}` : ''
  const names = me.namespaces.map(({ organization, namespace }) => `${organization}/${namespace}`)
  const open = (name: string) => {
    const place = me.namespaces.find(({ organization, namespace }) => `${organization}/${namespace}` === name)
    if (place) navigate(pathOf(place, sectionOf(route)))
  }
  return (
    <label class="namespace">
      <span>Namespace</span>
      <select value={value} onChange={({ currentTarget }) => open(currentTarget.value)}>
        {!names.includes(value) && <option value={value}>{value === '' ? 'Choose one' : value}</option>}
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  )
}

const SECTIONS: readonly (readonly [section: string, label: string, icon: IconName])[] = [
  ['tunnels', 'Tunnels', 'tunnel'],
  ['databases', 'Databases', 'database'],
  ['audit', 'Audit log', 'list'],
]

function sectionOf({ page }: Route): string {
  if (page.includes('database')) return 'databases'
  return page === 'audit' ? 'audit' : 'tunnels'
}

const Navigation = ({ route }: { route: Route & Place }) => (
  <nav aria-label="Sections">
    <ul>
      {SECTIONS.map(([section, label, icon]) => (
        <li key={section}>
          <Link to={pathOf(route, section)} current={sectionOf(route) === section}>
            <Icon name={icon} />
            {label}
          </Link>
        </li>
      ))}
    </ul>
  </nav>
)
