import { expect, test } from 'vitest'
import { TunnelSpec } from '../../crds/tunnel.ts'
import { type TunnelEndpoint, TunnelEndpointSpec } from '../../crds/tunnel-endpoint.ts'
import { connectCommands } from './tunnel-commands.ts'

const KEY = 'ssh-ed25519 AAAA'
const endpoint = (spec: object): TunnelEndpoint => ({
  apiVersion: 'mooring.dev/v1alpha1',
  kind: 'TunnelEndpoint',
  metadata: { name: 'eu', uid: 'u', resourceVersion: '1', generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: TunnelEndpointSpec.parse({
    ...{ region: '0b8f5d0e-6a55-4c6e-9a6b-4f6f1d1c0a01', domain: 't.test', sshHost: 'ssh.test' },
    ...spec,
  }),
  status: { hostKeys: [KEY] },
})
const hostname = '0123456789abcdef'
const commandsOf = (spec: object, config: object = {}) =>
  connectCommands({ hostname, endpoint: endpoint(spec), config: TunnelSpec.parse({ regionId: 1, config }).config })

test.each([
  { ssh: 22_222, line: `[ssh.test]:22222 ${KEY}` },
  { ssh: 22, line: `ssh.test ${KEY}` },
])('a known_hosts line has the name that OpenSSH uses for port $ssh', ({ ssh, line }) => {
  expect(commandsOf({ ports: { ssh } }).knownHosts).toEqual([line])
})

test('every command pins a host key, which it writes to a file first', () => {
  const { knownHosts, ...commands } = commandsOf({ ports: { ssh: 22 } })
  for (const command of Object.values(commands)) {
    expect(command).toContain(`echo '${knownHosts[0]}' > `)
    expect(command).toContain(' -o StrictHostKeyChecking=yes -o UserKnownHostsFile=')
    expect(command).not.toContain('accept-new')
  }
})

test('without a known host key a command pins none', () => {
  const unknown = { ...endpoint({}), status: {} }
  const { ssh } = connectCommands({ hostname, endpoint: unknown, config: TunnelSpec.parse({ regionId: 1 }).config })
  expect(ssh).toMatch(/^ssh -N /)
  expect(ssh).not.toContain('StrictHostKeyChecking')
})

test('a unit escapes the percent sign of an address with a zone', () => {
  const { ssh, systemd } = commandsOf({ sshHost: 'fe80::1%eth0' })
  expect(ssh).toContain('@fe80::1%eth0')
  expect(systemd.replaceAll(/%t|%%/g, '')).not.toContain('%')
})

test.each([
  { does: 'to port 3000 of the client’s machine', config: {}, forward: `-R ${hostname}:80:localhost:3000` },
  {
    does: 'to the target that the edge names, for a tunnel with a target',
    config: { target: 'db:5432' },
    forward: `-R ${hostname}:80`,
  },
])('every command forwards $does', ({ config, forward }) => {
  const { ssh, loop, autossh, systemd } = commandsOf({}, config)
  for (const command of [ssh, loop, autossh, systemd]) expect(command).toContain(` ${forward} ${hostname}@ssh.test`)
})
