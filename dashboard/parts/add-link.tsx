import type { ComponentChildren } from 'preact'
import type { Access } from '../access.ts'
import { apiPath } from '../router.ts'
import { Icon } from './icons.tsx'
import { Link } from './navigation.tsx'
import { useData } from './use-data.ts'

const POLL_MS = 10_000

type Quota = Readonly<Record<'instances' | 'databases' | 'tunnels', { readonly used: number; readonly limit: number }>>

interface AddLinkProps {
  readonly access: Access
  /** Resource that the link adds. */
  readonly counted: keyof Quota
  readonly to: string
  readonly children: ComponentChildren
}

/** Link to the form that adds a resource, with the quota of the namespace. When that is used up it is a button that cannot be pressed, with the reason. */
export function AddLink({ access, counted, to, children }: AddLinkProps) {
  const { data } = useData<{ namespace: { quota?: Quota } }>(apiPath(access), { everyMs: POLL_MS })
  const { used, limit } = data?.namespace.quota?.[counted] ?? { used: 0, limit: Infinity }
  const content = (
    <>
      <Icon name="plus" />
      {children}
    </>
  )
  return (
    <div class="add">
      {used > 0 && (
        <span class="sub">
          {used} of {limit}
          {used >= limit && ': the quota of this namespace is used up'}
        </span>
      )}
      {used >= limit ? (
        <button type="button" class="button primary" disabled>
          {content}
        </button>
      ) : (
        <Link class="button primary" to={to}>
          {content}
        </Link>
      )}
    </div>
  )
}
