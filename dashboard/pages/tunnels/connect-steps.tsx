import { useState } from 'preact/hooks'
import type { Access } from '../../access.ts'
import type { Tunnel } from '../../api/types.ts'
import { Code, Failure, Pill, Time } from '../../parts/basics.tsx'
import { TextField } from '../../parts/form.tsx'
import { Icon } from '../../parts/icons.tsx'
import { Link } from '../../parts/navigation.tsx'
import { useData } from '../../parts/use-data.ts'
import { apiPath, pathOf } from '../../router.ts'
import { withLocalPort } from './local-port.ts'

const POLL_MS = 700

interface ConnectStepsProps {
  readonly access: Access
  readonly made: Tunnel
  readonly password: string | undefined
}

/** Steps from a new tunnel to the first request: the command, whether the client is connected, and the public address. */
export function ConnectSteps({ access, made, password }: ConnectStepsProps) {
  const { data, failure } = useData<{ tunnel: Tunnel }>(apiPath(access, 'tunnels', made.id), { everyMs: POLL_MS })
  const [port, setPort] = useState('3000')
  const tunnel = data?.tunnel ?? made
  const { connected, sshCommand } = tunnel
  return (
    <ol class="steps">
      <li class="card done">
        <h2>Run this on the machine with your web server</h2>
        <TextField {...{ label: 'Port of your web server', field: 'port', value: port, onText: setPort }} />
        {sshCommand === null ? (
          <p role="status">Getting an address …</p>
        ) : (
          <Code label="Command" text={withLocalPort(sshCommand, port)} />
        )}
        {password !== undefined && (
          <>
            <p>
              When ssh asks for a password, paste this one. It is valid for four hours and is <strong>not shown again</strong>.
            </p>
            <Code label="Password" text={password} />
          </>
        )}
      </li>
      <li class={connected ? 'card done' : 'card waiting'}>
        <h2 aria-live="polite">{connected ? 'Connected' : 'Waiting for your connection …'}</h2>
        {connected ? <Pill tone="good">your client is connected</Pill> : <Waiting />}
        {connected && tunnel.lastConnectedAt !== null && (
          <span class="sub">
            since <Time at={tunnel.lastConnectedAt} />
          </span>
        )}
        <Failure failure={failure} />
      </li>
      <li class={connected ? 'card done' : 'card later'}>
        <h2>Open it</h2>
        {tunnel.directUrl !== null && <Code label="Public address" text={tunnel.directUrl} />}
        <div class="buttons">
          {connected && <OpenTunnel tunnel={tunnel} />}
          <Link class="button" to={pathOf(access, 'tunnels', tunnel.hostname ?? tunnel.id)}>
            Go to the tunnel
          </Link>
        </div>
      </li>
    </ol>
  )
}

const Waiting = () => (
  <p class="ping" aria-hidden="true">
    <span />
    <span />
    <span />
  </p>
)

/** Link that opens the public address in a new tab. The new tab has no access to this page. */
export const OpenTunnel = ({ tunnel: { directUrl } }: { tunnel: Pick<Tunnel, 'directUrl'> }) =>
  directUrl?.startsWith('https://') ? (
    <a class="button primary" href={directUrl} target="_blank" rel="noopener noreferrer">
      <Icon name="out" />
      Open
    </a>
  ) : null
