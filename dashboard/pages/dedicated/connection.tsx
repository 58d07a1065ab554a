import type { ComponentChildren } from 'preact'
import type { DatabaseConnection } from '../../api/types.ts'
import { Card, Code, Copy, Facts } from '../../parts/basics.tsx'
import { Samples } from '../../parts/samples.tsx'

interface ConnectionProps {
  readonly connection: DatabaseConnection
  readonly motor: string
  readonly isPrivate: boolean
}

/** Connection string and its parts, each with a button to copy it. */
export function Connection({ connection, motor, isPrivate }: ConnectionProps) {
  const { uri, host, internalHost, port, database, user, password, ca, ssh } = connection
  return (
    <Card title="Connection" class="once">
      <p>
        The page keeps the password only while it is <strong>shown here</strong>.
        {isPrivate && ' The database is in the private network: clients outside of it cannot connect.'}
      </p>
      <Code label="Connection string" text={uri} />
      <Samples parts={{ motor, uri, host, port, user, password, database }} />
      <Facts
        rows={[
          part('Host', host),
          ...(internalHost === null ? [] : [part('Host for pods', internalHost)]),
          part('Port', String(port)),
          part('Database', database),
          part('User', user),
          part('Password', password),
        ]}
      />
      {ssh && (
        <>
          <Code label="SSH tunnel" text={ssh.command} />
          <details>
            <summary>Host keys for known_hosts</summary>
            <Code label="Host keys" text={ssh.knownHosts.join('\n')} wrap={false} />
          </details>
        </>
      )}
      {ca !== null && (
        <details>
          <summary>Certificate authority</summary>
          <Code label="Certificate authority" text={ca} wrap={false} />
        </details>
      )}
    </Card>
  )
}

const part = (name: string, text: string): readonly [ComponentChildren, ComponentChildren] => [
  name,
  <span class="value">
    <span class="mono break">{text}</span>
    <Copy
      text={text}
      label={
        <>
          Copy<span class="hidden"> {name}</span>
        </>
      }
    />
  </span>,
]
