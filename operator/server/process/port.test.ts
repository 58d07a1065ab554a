import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect, test } from 'vitest'
import { choosePort, isFree } from './port.ts'

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
