import type { Instance } from '../../api/types.ts'
import { Card, Code, Facts } from '../../parts/basics.tsx'
import { Samples } from '../../parts/samples.tsx'

/** Connection string and its parts, from a response with credentials. */
export function Credentials({ instance }: { instance: Instance }) {
  const { motor, uri, host, port, user, name, password, tls } = instance
  return (
    <Card title="Connection" class="once">
      <p>
        Copy the connection string now: this page does <strong>not keep it</strong>.
      </p>
      {uri !== null && <Code label="Connection string" text={uri} />}
      {uri !== null && host !== null && port !== null && user !== null && name !== null && password !== null && (
        <Samples parts={{ motor, uri, host, port, user, password, database: name }} />
      )}
      <details>
        <summary>Its parts</summary>
        <Facts
          rows={[
            ['Host', <span class="mono break">{host}</span>],
            ['Port', <span class="mono">{port}</span>],
            ['Database', <span class="mono break">{name}</span>],
            ['User', <span class="mono break">{user}</span>],
            ['Password', <span class="mono break">{password}</span>],
            ['TLS', tls.required ? 'required' : 'not required'],
          ]}
        />
        {tls.ca !== null && <Code label="Certificate authority" text={tls.ca} wrap={false} />}
      </details>
    </Card>
  )
}
