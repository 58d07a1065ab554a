import { isIPv4, createServer } from 'node:net'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { isLoopback } from '../../../crds/formats/address-list.ts'
import { adminHost, callersHost, choosePort, choosePorts, isFree } from './address.ts'

test.each([
  { listen: '127.0.0.1', loopback: true, admin: '127.0.0.1' },
  { listen: '127.8.0.1', loopback: true, admin: '127.8.0.1' },
  { listen: '::1', loopback: true, admin: '::1' },
  { listen: '127.0.0.1.example.com', loopback: false, admin: '127.0.0.1.example.com' },
  { listen: '0.0.0.0', loopback: false, admin: '127.0.0.1' },
  { listen: '::', loopback: false, admin: '::1' },
  { listen: '192.0.2.1', loopback: false, admin: '192.0.2.1' },
])('$listen is dialled by the operator at $admin', ({ listen, loopback, admin }) => {
  expect(isLoopback(listen)).toBe(loopback)
  expect(adminHost(listen)).toBe(admin)
})

test('callers of a wildcard get an address they can dial', () => {
  expect(isIPv4(callersHost('0.0.0.0'))).toBe(true)
  expect(callersHost('192.0.2.1')).toBe('192.0.2.1')
})

const host = '127.0.0.1'

test('keeps the port it had, even one that is reserved for it', async () => {
  const port = await choosePort({ host, preferred: undefined, reserved: new Set() })
  expect(await choosePort({ host, preferred: port, reserved: new Set([port]) })).toBe(port)
})

test('takes another when the port is in use', async () => {
  const port = await choosePort({ host, preferred: undefined, reserved: new Set() })
  await using other = createServer().listen(port, host)
  await once(other, 'listening')
  expect(await isFree(host, port)).toBe(false)
  expect(await choosePort({ host, preferred: port, reserved: new Set() })).not.toBe(port)
})

test('never returns a port of another server, and throws when none is left', async () => {
  const reserved = new Set(Array.from({ length: 65_536 }, (_, port) => port))
  await expect(choosePort({ host, preferred: undefined, reserved })).rejects.toMatchObject({ code: 'no_free_port' })
})

test('a server of an older version keeps its port, and gets one for the administrator', async () => {
  const reserved = new Set<number>()
  const former = await choosePorts({ listen: host, hasAdminPort: false, former: undefined, reserved })
  expect(former).toEqual({ port: expect.any(Number) as number })
  const ports = await choosePorts({ listen: host, hasAdminPort: true, former, reserved })
  expect(ports.port).toBe(former.port)
  expect(ports.adminPort).not.toBe(ports.port)
  expect(await choosePorts({ listen: host, hasAdminPort: true, former: ports, reserved })).toEqual(ports)
})
