import { z } from 'zod'
import { TunnelConfig } from '../tunnel-config.ts'

const { authMode, authorizedKeys } = TunnelConfig.shape

/** Settings of the SSH tunnel of a dedicated database. They mean the same as the settings of these names of a Tunnel. */
export const SshTunnel = z.object({ authMode, authorizedKeys })

const address = (whose: string) => ({
  host: z.string().max(253).describe(`Host of ${whose}.`),
  port: z.int().min(1).max(65_535).describe(`Port of ${whose}.`),
})

/** Observed state of the SSH tunnel. Only the operator writes it: edges open connections to `server`. */
export const SshTunnelStatus = z.object({
  hostname: z.string().max(16).describe('User name of SSH logins: 16 random hexadecimal digits.'),
  endpointRef: z
    .object({ name: z.string().max(253).describe('Name of the TunnelEndpoint.') })
    .describe('TunnelEndpoint whose edges accept the logins.'),
  host: z.string().max(253).optional().describe('Host that SSH clients connect to.'),
  port: z.int().min(1).max(65_535).optional().describe('Port that SSH clients connect to.'),
  server: z
    .object({
      ...address('the database server'),
      source: z.string().max(45).optional().describe('Local address of the connections. Absent: the choice of the machine.'),
    })
    .optional()
    .describe('Address at which edges reach the database server. Absent until the server runs.'),
})
export type SshTunnelStatus = z.output<typeof SshTunnelStatus>

/** Type of the condition about the SSH tunnel of a database. */
export const SSH_TUNNEL_READY = 'SshTunnelReady'
/** Reasons of `SshTunnelReady`. */
export const SshTunnelReason = {
  /** Clients can log in. */
  Assigned: 'Assigned',
  /** No endpoint of the region accepts new tunnels: it must be active and have edges. The database works without its SSH tunnel. */
  NoActiveEndpoint: 'NoActiveEndpoint',
  /** A key is incomplete, not of the type that it names, or RSA with fewer than 2048 bits. Other keys and passwords work. */
  UnusableKey: 'UnusableKey',
} as const
export type SshTunnelReason = (typeof SshTunnelReason)[keyof typeof SshTunnelReason]
