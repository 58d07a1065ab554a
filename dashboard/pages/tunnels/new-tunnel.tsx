import { useState } from 'preact/hooks'
import type { Access } from '../../access.ts'
import { call } from '../../api/client.ts'
import type { Region, Tunnel, TunnelPassword } from '../../api/types.ts'
import { linesOf, otherMessages } from '../../field-messages.ts'
import { Failure, Loading } from '../../parts/basics.tsx'
import { Choice, TextField } from '../../parts/form.tsx'
import { Link } from '../../parts/navigation.tsx'
import { useAction, useData } from '../../parts/use-data.ts'
import { apiPath, pathOf } from '../../router.ts'
import { ConnectSteps } from './connect-steps.tsx'

const FIELDS = ['name', 'regionId', 'config.authorizedKeys']

interface Made {
  readonly tunnel: Tunnel
  readonly password: string | undefined
}

/** Creates a tunnel, then shows how to connect a client and whether one is connected. */
export function NewTunnelPage({ access }: { access: Access }) {
  const [made, setMade] = useState<Made>()
  return (
    <>
      <p class="crumbs">
        <Link to={pathOf(access, 'tunnels')}>Tunnels</Link>
      </p>
      <div class="page-head">
        <h1>{made ? made.tunnel.name : 'New tunnel'}</h1>
      </div>
      {made ? (
        <ConnectSteps access={access} made={made.tunnel} password={made.password} />
      ) : (
        <NewTunnelForm {...{ access, setMade }} />
      )}
    </>
  )
}

function NewTunnelForm({ access, setMade }: { access: Access; setMade: (made: Made) => void }) {
  const regions = useData<{ regions: readonly Region[] }>('/v1/regions')
  const usable = (regions.data?.regions ?? []).filter(({ tunnels }) => tunnels)
  const [name, setName] = useState('')
  const [regionId, setRegionId] = useState('')
  const [keys, setKeys] = useState('')
  const { isBusy, failure, run } = useAction()

  const submit = async (event: Event) => {
    event.preventDefault()
    await run(async () => {
      const authorizedKeys = linesOf(keys)
      const body = { name, regionId: Number(regionId || usable[0]?.regionId), config: { authorizedKeys } }
      const { data } = await call<{ tunnel: Tunnel }>('POST', apiPath(access, 'tunnels'), { body })
      setMade({ tunnel: data.tunnel, password: authorizedKeys.length === 0 ? await newPassword(access, data.tunnel) : undefined })
    })
  }

  if (!regions.data) return regions.failure ? <Failure failure={regions.failure} /> : <Loading />
  if (usable.length === 0) return <Failure failure={{ message: 'No region of this installation takes tunnels.' }} />
  const rest = otherMessages(failure, FIELDS)
  return (
    <form class="card narrow" onSubmit={submit}>
      <TextField
        {...{ label: 'Name', field: 'name', required: true, failure, value: name, onText: setName, placeholder: 'web' }}
        hint="For you to recognize it; the address is a random one."
      />
      {usable.length > 1 && (
        <Choice
          {...{ label: 'Region', field: 'regionId', failure, value: regionId, onText: setRegionId }}
          options={usable.map((region) => [String(region.regionId), region.name])}
        />
      )}
      <TextField
        {...{ label: 'Public keys, one a line (optional)', field: 'config.authorizedKeys', failure, rows: 3 }}
        {...{ value: keys, onText: setKeys, placeholder: 'ssh-ed25519 AAAA…' }}
        hint="What ~/.ssh/id_ed25519.pub holds. Without a key you get a password that is valid for four hours."
      />
      {rest !== undefined && <Failure failure={{ message: rest }} />}
      <div class="buttons">
        <button type="submit" class="button primary" disabled={isBusy}>
          {isBusy ? 'Creating …' : 'Create tunnel'}
        </button>
      </div>
    </form>
  )
}

async function newPassword(access: Access, { id }: Tunnel): Promise<string | undefined> {
  const { data } = await call<{ password: TunnelPassword }>('POST', apiPath(access, 'tunnels', id, 'passwords'))
  return data.password.password
}
