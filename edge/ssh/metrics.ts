import { Counter, Gauge, type Registry } from 'prom-client'
import { nativeCiphers } from './wire/packets.ts'

/** Metrics of the SSH server. Labels never name a tunnel or a client. */
export interface SshMetrics {
  connected(): void
  loggedIn(authMethod: 'key' | 'token'): void
  refused(reason: string): void
  /** Counts a refused login that is not recorded. */
  unrecorded(): void
  ended(reason: string): void
}

interface Gauges {
  readonly connections: number
  readonly sessions: number
  readonly channels: number
}

/** Creates the metrics. Reasons are codes of the edge: a bounded set. */
export function createSshMetrics(registry: Registry, now: () => Gauges): SshMetrics {
  const registers = [registry]
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read())
      },
    })
  gauge('mooring_ssh_connections', 'SSH connections, logged in or not.', () => now().connections)
  gauge('mooring_ssh_sessions', 'SSH sessions that serve a tunnel.', () => now().sessions)
  gauge('mooring_ssh_channels', 'Channels of all SSH sessions.', () => now().channels)
  gauge(
    'mooring_ssh_native_ciphers',
    '1 when SSH uses native ciphers; 0 when it uses JavaScript ciphers, which are several times slower.',
    () => (nativeCiphers ? 1 : 0),
  )
  const counter = <L extends string>(name: string, help: string, labelNames: L[]) =>
    new Counter({ name, help, labelNames, registers })
  const connections = counter('mooring_ssh_connections_total', 'SSH connections that were accepted.', [])
  const logins = counter('mooring_ssh_logins_total', 'Clients that logged in over SSH.', ['auth_method'])
  const refusals = counter('mooring_ssh_refused_logins_total', 'SSH connections whose login was refused.', ['reason'])
  const unrecorded = counter(
    'mooring_ssh_unrecorded_refusals_total',
    'Refused logins above the number that the journal records of one tunnel in a minute.',
    [],
  )
  const ends = counter('mooring_ssh_ended_total', 'Logged-in SSH connections that ended.', ['reason'])
  return {
    connected: () => connections.inc(),
    loggedIn: (authMethod) => logins.inc({ auth_method: authMethod }),
    refused: (reason) => refusals.inc({ reason }),
    unrecorded: () => unrecorded.inc(),
    ended: (reason) => ends.inc({ reason }),
  }
}
