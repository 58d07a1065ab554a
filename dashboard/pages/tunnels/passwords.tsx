import { useState } from 'preact/hooks'
import { call } from '../../api/client.ts'
import type { TunnelPassword } from '../../api/types.ts'
import { Card, Code, Empty, Failure, Loading, Time } from '../../parts/basics.tsx'
import { Confirm } from '../../parts/dialog.tsx'
import { Icon } from '../../parts/icons.tsx'
import { useAction, useData } from '../../parts/use-data.ts'
import { apiPath } from '../../router.ts'
import type { TunnelTabProps } from './tab-props.ts'

/** Temporary passwords of a tunnel. */
export const PasswordsTab = ({ access, tunnel }: TunnelTabProps) => (
  <PasswordsCard
    path={apiPath(access, 'tunnels', tunnel.id, 'passwords')}
    canEdit={access.role !== 'viewer'}
    warning={
      tunnel.config.authMode === 'key' ? 'The settings of this tunnel allow keys alone: a password does not log in.' : undefined
    }
  />
)

interface PasswordsCardProps {
  /** Path of the passwords in the REST API. */
  readonly path: string
  readonly canEdit: boolean
  /** Why a password is of no use. */
  readonly warning: string | undefined
}

/** Temporary passwords for SSH logins: issue, show once, revoke. */
export function PasswordsCard({ path, canEdit, warning }: PasswordsCardProps) {
  const { data, failure, reload } = useData<{ passwords: readonly TunnelPassword[] }>(path)
  const [issued, setIssued] = useState<TunnelPassword>()
  const [revoked, setRevoked] = useState<TunnelPassword>()
  const { isBusy, failure: issueFailure, run } = useAction()
  const issue = () =>
    run(async () => {
      const made = await call<{ password: TunnelPassword }>('POST', path)
      setIssued(made.data.password)
      reload()
    })
  const revoke = async () => {
    await call('DELETE', `${path}/${encodeURIComponent(revoked?.id ?? '')}`)
    if (issued?.id === revoked?.id) setIssued(undefined)
    reload()
  }
  const add = canEdit && (
    <button type="button" class="button primary small" disabled={isBusy} onClick={issue}>
      <Icon name="plus" />
      New password
    </button>
  )
  return (
    <Card title="Temporary passwords" actions={add}>
      <p class="hint">Each is valid for four hours. Revoking one ends the sessions that it opened.</p>
      {warning !== undefined && <p class="note warn">{warning}</p>}
      <Failure failure={failure ?? issueFailure} />
      {issued?.password !== undefined && (
        <div class="once">
          <p>
            Copy it now: it is <strong>not shown again</strong>.
          </p>
          <Code label="New password" text={issued.password} />
        </div>
      )}
      {!data && !failure && <Loading />}
      {data?.passwords.length === 0 && <Empty icon="key" title="No passwords" />}
      {data && data.passwords.length > 0 && <Passwords {...{ passwords: data.passwords, canEdit, onRevoke: setRevoked }} />}
      {revoked && (
        <Confirm title="Revoke this password?" verb="Revoke" onConfirm={revoke} onClose={() => setRevoked(undefined)}>
          <p>Clients that logged in with it are disconnected at once.</p>
        </Confirm>
      )}
    </Card>
  )
}

interface PasswordsProps {
  readonly passwords: readonly TunnelPassword[]
  readonly canEdit: boolean
  readonly onRevoke: (password: TunnelPassword) => void
}

const Passwords = ({ passwords, canEdit, onRevoke }: PasswordsProps) => (
  <ul class="plain-list">
    {passwords.map((password) => (
      <li key={password.id}>
        <span>
          expires <Time at={password.expiresAt} />
          <span class="sub">
            by {password.createdBy ?? 'unknown'}, <Time at={password.createdAt} />
          </span>
        </span>
        {canEdit && (
          <button type="button" class="button small" onClick={() => onRevoke(password)}>
            Revoke
          </button>
        )}
      </li>
    ))}
  </ul>
)
