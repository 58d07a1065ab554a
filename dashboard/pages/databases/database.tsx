import { useState } from 'preact/hooks'
import type { Access } from '../../access.ts'
import { call } from '../../api/client.ts'
import type { Instance } from '../../api/types.ts'
import { ActionRow, AskButton } from '../../parts/actions.tsx'
import { Card, Facts, Failure, Loading, Time } from '../../parts/basics.tsx'
import { Confirm } from '../../parts/dialog.tsx'
import { Link, navigate } from '../../parts/navigation.tsx'
import { useAction, useData } from '../../parts/use-data.ts'
import { pathOf } from '../../router.ts'
import { AuditTable } from '../audit.tsx'
import { Credentials } from './credentials.tsx'
import { DatabaseState, Expiry, motorName } from './database-state.tsx'

const POLL_MS = 3_000

interface InstanceData {
  readonly instance: Instance
}

/** One database: state, credentials on demand, actions, audit entries. */
export function DatabasePage({ access, id }: { access: Access; id: string }) {
  const path = `/v1/instances/${encodeURIComponent(id)}`
  const { data, failure, reload } = useData<InstanceData>(path, { everyMs: POLL_MS })
  const [withCredentials, setCredentials] = useState<Instance>()
  const instance = data?.instance
  if (!instance) return failure ? <Failure failure={failure} /> : <Loading />
  return (
    <>
      <p class="crumbs">
        <Link to={pathOf(access, 'databases')}>Databases</Link>
      </p>
      <div class="page-head">
        <div class="head-main">
          <h1>
            {instance.identifier} <DatabaseState instance={instance} />
          </h1>
          <p class="sub">{motorName(instance.motor)}</p>
        </div>
      </div>
      <Failure failure={failure} />
      {withCredentials && <Credentials instance={withCredentials} />}
      <div class="columns">
        <About instance={instance} />
        {access.role !== 'viewer' && (
          <Actions
            {...{ access, instance, path, reload, isShown: withCredentials !== undefined, onCredentials: setCredentials }}
          />
        )}
      </div>
      <h2 class="section">Audit</h2>
      <AuditTable access={access} id={instance.id} />
    </>
  )
}

const About = ({
  instance: { host, port, name, user, region, engineVersion, createdAt, expiresAt, id },
}: {
  instance: Instance
}) => (
  <Card title="About">
    <Facts
      rows={[
        ['Address', <span class="mono break">{host === null ? '–' : `${host}:${port ?? ''}`}</span>],
        ['Database', <span class="mono break">{name ?? '–'}</span>],
        ['User', <span class="mono break">{user ?? '–'}</span>],
        ['Region', region],
        ['Version', engineVersion ?? '–'],
        ['Created', <Time at={createdAt} />],
        ['Expiry', <Expiry at={expiresAt} />],
        ['Id', <span class="mono break">{id}</span>],
      ]}
    />
  </Card>
)

interface ActionsProps {
  readonly access: Access
  readonly instance: Instance
  readonly path: string
  readonly reload: () => void
  readonly isShown: boolean
  readonly onCredentials: (instance: Instance | undefined) => void
}

type Asked = 'rotate' | 'reset' | 'disable' | 'delete'

function Actions({ access, instance, path, reload, isShown, onCredentials }: ActionsProps) {
  const [asked, setAsked] = useState<Asked>()
  const { isBusy, failure, run } = useAction()
  const change = async (method: string, rest: string, body?: object): Promise<Instance> => {
    const { data } = await call<InstanceData>(method, path + rest, { body })
    reload()
    return data.instance
  }
  const show = () => run(async () => onCredentials(await change('GET', '?include=credentials')))
  const enable = () => run(() => change('PATCH', '', { isEnabled: true }))
  const doneBy: Readonly<Record<Asked, () => Promise<unknown>>> = {
    rotate: async () => onCredentials(await change('POST', '/password')),
    reset: () => change('POST', '/reset'),
    disable: () => change('PATCH', '', { isEnabled: false }),
    delete: async () => {
      await call('DELETE', path)
      navigate(pathOf(access, 'databases'))
    },
  }
  return (
    <Card title="Actions">
      <Failure failure={failure} />
      <ul class="actions">
        <ActionRow hint="The read is recorded in the audit log.">
          <button type="button" class="button" disabled={isBusy} onClick={isShown ? () => onCredentials(undefined) : show}>
            {isShown ? 'Hide connection string' : 'Show connection string'}
          </button>
        </ActionRow>
        <ActionRow hint="A new password; sessions end.">
          <AskButton label="Rotate the password" onClick={() => setAsked('rotate')} />
        </ActionRow>
        <ActionRow hint="Empties it, or copies its template again. The credentials stay.">
          <AskButton label="Reset" onClick={() => setAsked('reset')} />
        </ActionRow>
        <ActionRow hint="Logins are rejected; the data stays.">
          {instance.isEnabled ? (
            <AskButton label="Disable" onClick={() => setAsked('disable')} />
          ) : (
            <button type="button" class="button" disabled={isBusy} onClick={enable}>
              Enable
            </button>
          )}
        </ActionRow>
        <ActionRow hint="Database and user are gone for good.">
          <AskButton label="Delete" onClick={() => setAsked('delete')} />
        </ActionRow>
      </ul>
      {asked && (
        <Confirm
          title={`${QUESTIONS[asked].verb} ${instance.identifier}?`}
          verb={QUESTIONS[asked].verb}
          onConfirm={doneBy[asked]}
          onClose={() => setAsked(undefined)}
        >
          <p>{QUESTIONS[asked].text}</p>
        </Confirm>
      )}
    </Card>
  )
}

const QUESTIONS: Readonly<Record<Asked, { readonly verb: string; readonly text: string }>> = {
  rotate: { verb: 'Rotate', text: 'The old password stops working at once, and open sessions end.' },
  reset: { verb: 'Reset', text: 'All data in it is lost. This cannot be undone.' },
  disable: { verb: 'Disable', text: 'Sessions end, and logins are rejected until it is enabled again.' },
  delete: { verb: 'Delete', text: 'The database, its user and all data are deleted. This cannot be undone.' },
}
