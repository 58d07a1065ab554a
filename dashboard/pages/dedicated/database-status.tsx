import type { DedicatedDatabase } from '../../api/types.ts'
import { Icon } from '../../parts/icons.tsx'
import { Pill, type Tone } from '../../parts/basics.tsx'

type Status = DedicatedDatabase['status']

const TONES: Readonly<Record<Status, Tone>> = {
  provisioning: 'accent',
  running: 'good',
  updating: 'accent',
  restoring: 'accent',
  failed: 'bad',
  deleting: 'warn',
}

const IN_PROGRESS: readonly Status[] = ['provisioning', 'updating', 'restoring', 'deleting']

/** State of a dedicated database, for lists and headings. */
export const DatabaseStatus = ({ status }: { status: Status }) => (
  <Pill tone={TONES[status]} live={IN_PROGRESS.includes(status)}>
    {status}
  </Pill>
)

/** Reason of the state; nothing while the database runs. */
export function StatusReason({ database: { status, statusReason } }: { database: DedicatedDatabase }) {
  if (status === 'running' || statusReason === null) return null
  const isFailed = status === 'failed'
  return (
    <p class={isFailed ? 'note bad' : 'note accent'} role={isFailed ? 'alert' : 'status'}>
      <Icon name={isFailed ? 'alert' : 'clock'} />
      <span>{statusReason}</span>
    </p>
  )
}
