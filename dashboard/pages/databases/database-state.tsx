import type { Instance } from '../../api/types.ts'
import { Pill, Time } from '../../parts/basics.tsx'

/** State of a database, for lists and headings. */
export function DatabaseState({
  instance: { host, isEnabled, state },
}: {
  instance: Pick<Instance, 'host' | 'isEnabled' | 'state'>
}) {
  if (state === 'deleting') return <Pill tone="warn">deleting</Pill>
  if (host === null) return <Pill tone="warn">preparing</Pill>
  return isEnabled ? <Pill tone="good">ready</Pill> : <Pill tone="plain">disabled</Pill>
}

export const Expiry = ({ at }: { at: string | null }) =>
  at === null ? (
    <>never expires</>
  ) : (
    <>
      expires <Time at={at} />
    </>
  )

const FAMILIES: Readonly<Record<string, string>> = {
  mysql: 'MySQL',
  mariadb: 'MariaDB',
  postgresql: 'PostgreSQL',
  mongodb: 'MongoDB',
}

/** `postgresql-15.4.0` → `PostgreSQL 15.4.0` */
export function motorName(motor: string): string {
  const [family = '', version = ''] = motor.split('-')
  return `${FAMILIES[family] ?? family} ${version}`
}
