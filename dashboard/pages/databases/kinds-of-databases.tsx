import type { Access } from '../../access.ts'
import { Link } from '../../parts/navigation.tsx'
import { pathOf } from '../../router.ts'

const KINDS = [
  ['databases', 'Shared'],
  ['dedicated', 'Dedicated'],
] as const

/** Links between the lists of shared and of dedicated databases. */
export const KindsOfDatabases = ({ access, current }: { access: Access; current: (typeof KINDS)[number][0] }) => (
  <nav class="tabs" aria-label="Kinds of databases">
    {KINDS.map(([section, label]) => (
      <Link key={section} to={pathOf(access, section)} current={section === current}>
        {label}
      </Link>
    ))}
  </nav>
)
