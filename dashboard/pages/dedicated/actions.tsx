import { useState } from 'preact/hooks'
import type { Access } from '../../access.ts'
import { ApiFailure, call } from '../../api/client.ts'
import type { DatabaseConnection, DedicatedDatabase } from '../../api/types.ts'
import { ActionRow, AskButton } from '../../parts/actions.tsx'
import { Card, Failure } from '../../parts/basics.tsx'
import { Confirm } from '../../parts/dialog.tsx'
import { navigate } from '../../parts/navigation.tsx'
import { useAction } from '../../parts/use-data.ts'
import { pathOf } from '../../router.ts'

interface ActionsProps {
  readonly access: Access
  readonly database: DedicatedDatabase
  readonly path: string
  readonly reload: () => void
  readonly isShown: boolean
  readonly onConnection: (connection: DatabaseConnection | undefined) => void
}

/** Actions on a database: show its connection, rotate its password, delete it. */
export function Actions({ access, database, path, reload, isShown, onConnection }: ActionsProps) {
  const [asked, setAsked] = useState<'rotate' | 'delete'>()
  const { isBusy, failure, run } = useAction()
  const read = async (method: 'GET' | 'POST', rest: string): Promise<void> => {
    const { data } = await call<{ database: DedicatedDatabase }>(method, path + rest)
    onConnection(connectionOf(data.database))
    reload()
  }
  const rotate = () => read('POST', '/password')
  const remove = async () => {
    await call('DELETE', path)
    navigate(pathOf(access, 'dedicated'))
  }
  const close = () => setAsked(undefined)
  return (
    <Card title="Actions">
      <Failure failure={failure} />
      <ul class="actions">
        <ActionRow hint="The read is recorded in the audit log.">
          <button
            {...{ type: 'button', class: 'button', disabled: isBusy }}
            onClick={isShown ? () => onConnection(undefined) : () => run(() => read('GET', ''))}
          >
            {isShown ? 'Hide connection' : 'Show connection'}
          </button>
        </ActionRow>
        <ActionRow hint="Sets a new password and ends all sessions.">
          <AskButton label="Rotate the password" onClick={() => setAsked('rotate')} />
        </ActionRow>
        <ActionRow hint="The server, its data and the user are deleted permanently.">
          <AskButton label="Delete" onClick={() => setAsked('delete')} />
        </ActionRow>
      </ul>
      {asked === 'rotate' && (
        <Confirm title={`Rotate the password of ${database.name}?`} verb="Rotate" onConfirm={rotate} onClose={close}>
          <p>The old password stops working at once, and open sessions end.</p>
        </Confirm>
      )}
      {asked === 'delete' && (
        <Confirm
          {...{ title: `Delete ${database.name}?`, verb: 'Delete', typed: database.name, onConfirm: remove, onClose: close }}
        >
          <p>The server, the database and all its data are deleted. This cannot be undone.</p>
        </Confirm>
      )}
    </Card>
  )
}

/** Returns the connection of a database. @throws ApiFailure when the API returned none */
function connectionOf({ connection, status }: DedicatedDatabase): DatabaseConnection {
  if (connection) return connection
  const message = `The database is ${status}; it has a connection when it is running.`
  throw new ApiFailure(message, { status: 200, code: 'not_running' })
}
