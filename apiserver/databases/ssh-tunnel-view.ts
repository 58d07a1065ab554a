import { z } from 'zod'
import type { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import { knownHostsLines } from '../../crds/formats/ssh-public-key.ts'
import { isFields } from '../../crds/formats/fields.ts'
import { partsOf, USUAL_PORTS } from '../../crds/motor.ts'
import { SSH_TUNNEL_READY, SshTunnelReason } from '../../crds/parts/ssh-tunnel.ts'
import { AUTH_MODES, brokenItems, KEY_RULE, TunnelConfig } from '../../crds/tunnel-config.ts'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { conditionOf } from '../../store/conditions.ts'
import { ApiError } from '../http/errors.ts'
import type { RegionView } from '../catalog/regions.ts'
import type { BodyCheck } from '../http/route.ts'

const { authMode, authorizedKeys } = TunnelConfig.shape

/** `sshTunnel` in a body. In a PATCH, null for a field restores its default, and null for `sshTunnel` removes the add-on. */
export const SshTunnelBody = z
  .object({
    authMode: authMode.unwrap().nullish().describe('Credentials that logins may use: `key`, `token` or `both`. Default: `both`.'),
    authorizedKeys: authorizedKeys.unwrap().nullish().describe('Public keys in OpenSSH format that may log in.'),
  })
  .nullish()
  .describe('SSH tunnel to the database, through the edges of the region. Null: none.')

/** Returns the settings of a new database without its null fields: these get their defaults, as in a PATCH. */
export const withoutNulls = ({ authMode, authorizedKeys }: NonNullable<z.output<typeof SshTunnelBody>>) => ({
  ...(authMode && { authMode }),
  ...(authorizedKeys && { authorizedKeys }),
})

/** Checks that a region has edges for an SSH tunnel. @throws ApiError `no_active_endpoint` */
export function requireEdges({ name, tunnels }: Pick<RegionView, 'name' | 'tunnels'>): void {
  if (tunnels) return
  const message = `region ${name} has no active endpoint with edges, which an SSH tunnel needs; leave sshTunnel out`
  throw new ApiError('no_active_endpoint', message, { details: [{ field: 'sshTunnel', message }] })
}

/** Checks that the keys of a body are whole and usable; the schema checks only their syntax. */
export const checkSshKeys: BodyCheck = (body, named) => {
  const given = 'sshTunnel' in body && isFields(body.sshTunnel) ? body.sshTunnel.authorizedKeys : undefined
  const field = 'sshTunnel.authorizedKeys'
  if (!Array.isArray(given) || named.has(field)) return []
  return brokenItems(KEY_RULE, given).map((index) => ({ field: `${field}[${index}]`, message: KEY_RULE.message }))
}

/** `sshTunnel` of a database. */
export const SshTunnelView = z
  .object({ authMode: z.enum(AUTH_MODES), authorizedKeys: z.array(z.string()) })
  .nullable()
  .describe('SSH tunnel. Null: none.')

export const sshTunnelView = ({ spec: { sshTunnel } }: DedicatedDatabase): z.output<typeof SshTunnelView> =>
  sshTunnel ? { authMode: sshTunnel.authMode, authorizedKeys: [...sshTunnel.authorizedKeys] } : null

/** `connection.ssh` of a database. */
export const SshConnectionView = z.object({
  command: z
    .string()
    .describe('Command that makes the database reachable at the usual port of its engine on the client’s own machine.'),
  hostname: z.string().describe('User name of the SSH login: 16 hexadecimal digits.'),
  knownHosts: z.array(z.string()).describe('Lines for `known_hosts`.'),
})
type SshConnectionView = z.output<typeof SshConnectionView>

/** Returns how to connect by SSH; undefined without the add-on, and until the operator has assigned an endpoint. */
export function sshConnectionView(
  { spec, status }: DedicatedDatabase,
  endpointOf: (name: string) => TunnelEndpoint | undefined,
): SshConnectionView | undefined {
  const assigned = spec.sshTunnel && status?.sshTunnel
  const { host, port } = assigned ?? {}
  if (!assigned || host === undefined || port === undefined) return undefined
  const { hostname, endpointRef } = assigned
  const usual = USUAL_PORTS[partsOf(spec.motor).family]
  const keys = endpointOf(endpointRef.name)?.status?.hostKeys ?? []
  return {
    command: `ssh -N -L ${usual}:db:${usual} ${hostname}@${host} -p ${port}`,
    hostname,
    knownHosts: [...knownHostsLines(keys, host, port)],
  }
}

/** Checks that the database has an SSH tunnel with an endpoint, and that it accepts passwords. @throws ApiError `conflict` */
export function requirePasswordLogin(database: DedicatedDatabase): void {
  const { sshTunnel } = database.spec
  const patch = (value: string) => `PATCH it with {"sshTunnel":${value}} first`
  if (!sshTunnel) throw new ApiError('conflict', `this database has no SSH tunnel; ${patch('{}')}`)
  if (sshTunnel.authMode === 'key') {
    const fix = `${patch('{"authMode":"both"}')}, or log in with a key of authorizedKeys`
    throw new ApiError('conflict', `authMode of its SSH tunnel is key, so that it takes no passwords; ${fix}`)
  }
  const condition = conditionOf(database, SSH_TUNNEL_READY)
  if (condition?.reason === SshTunnelReason.NoActiveEndpoint) throw new ApiError('conflict', condition.message)
}
