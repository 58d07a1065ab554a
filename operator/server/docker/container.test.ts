import { expect, test } from 'vitest'
import { postgresqlPod } from '../kubernetes/postgresql.ts'
import {
  configHash,
  containerNames,
  containerPaths,
  type DesiredContainer,
  initialiseArgs,
  memoryOf,
  networkName,
  passwdFor,
  serveArgs,
} from './container.ts'

const desired: DesiredContainer = {
  paths: containerPaths('/srv/moor,ing/servers', 'c0ffee'),
  engine: postgresqlPod,
  image: 'sha256:0a',
  user: { uid: 1234, gid: 1234 },
  memoryMiB: memoryOf(undefined),
  port: 20_001,
  outputAt: '/usr/share/postgresql/15/extension',
  stopSignal: 'SIGINT',
  network: networkName('/srv/moor,ing/servers'),
  labels: { 'dev.mooring.server': 'postgresql-15-4-0-r1-1' },
}

test('a server is published on loopback alone', () => {
  const args = serveArgs(desired)
  const at = args.indexOf('--publish')
  expect(args[at + 1]).toBe('127.0.0.1:20001:5432')
  expect(args.filter((arg) => arg === '--publish' || arg === '-p' || arg === '--publish-all')).toHaveLength(1)
})

test('the port for the administrator is published on loopback, too', () => {
  const args = serveArgs({ ...desired, adminPort: { published: 20_002, inside: 33_062 } })
  expect(args.join(' ')).toContain('--publish 127.0.0.1:20001:5432 --publish 127.0.0.1:20002:33062')
})

test.each([
  { what: 'the server', args: serveArgs(desired) },
  { what: 'the creation of its data', args: initialiseArgs(desired) },
])('$what runs as the owner of the data, without privileges', ({ args }) => {
  const text = args.join(' ')
  expect(text).toContain('--user 1234:1234')
  expect(text).toContain('--read-only --cap-drop ALL --security-opt no-new-privileges')
  expect(text).not.toContain('--privileged')
})

test.each([
  { of: 'a shared server', size: undefined, args: '--shm-size 512m --memory 2048m --memory-swap 2048m' },
  {
    ...{ of: 'a dedicated server', size: { cpu: 2, memoryMiB: 4096, storageGiB: 10 } },
    args: '--shm-size 1024m --memory 4096m --memory-swap 4096m',
  },
])('the memory of $of is limited to that of its pod in a cluster, without swap', ({ size, args }) => {
  const sized = { ...desired, memoryMiB: memoryOf(size) }
  for (const command of [serveArgs(sized), initialiseArgs(sized)]) expect(command.join(' ')).toContain(args)
})

test('only the creation of the data sees the password, and it has no network', () => {
  const [serve, initialise] = [serveArgs(desired).join(' '), initialiseArgs(desired).join(' ')]
  expect(initialise).toContain('target=/etc/mooring/admin,readonly')
  expect(initialise).toContain('--network none')
  expect(serve).not.toContain('/etc/mooring/admin')
})

test('a path with a comma is one field of a mount', () => {
  expect(serveArgs(desired)).toContain('type=bind,"source=/srv/moor,ing/servers/c0ffee/data",target=/var/lib/postgresql/data')
})

test('containers of a copy of the data directory have other names', () => {
  const copy = containerPaths('/srv/copy/servers', 'c0ffee')
  expect(containerNames(copy).serve).not.toBe(containerNames(desired.paths).serve)
})

test.each([
  { what: 'another image', change: { image: 'sha256:0b' } },
  { what: 'another size', change: { memoryMiB: 4096 } },
  { what: 'another port', change: { port: 20_002 } },
  { what: 'another user', change: { user: { uid: 1235, gid: 1235 } } },
])('a container with $what is not adopted', ({ change }) => {
  expect(configHash({ ...desired, ...change }, {})).not.toBe(configHash(desired, {}))
})

test('a container with other settings is not adopted', () => {
  expect(configHash(desired, { 'postgresql.conf': 'a' })).not.toBe(configHash(desired, { 'postgresql.conf': 'b' }))
  expect(configHash(desired, {})).toBe(configHash({ ...desired, labels: {} }, {}))
})

test('the user of a container has a name', () => {
  expect(passwdFor({ uid: 1234, gid: 5678 })).toContain('mooring:x:1234:5678:')
})
