import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { Output, BEFORE_LOGIN_BYTES } from './output.ts'

const KIB = 1024
const MIB = 1024 * KIB

/** Our end of a connection whose other end does not read. */
async function toOneWhoReadsNothing() {
  const server = createServer({ pauseOnConnect: true })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [[other]] = (await Promise.all([once(server, 'connection'), once(socket, 'connect')])) as unknown as [[Socket]]
  socket.on('error', () => socket.destroy())
  other.on('error', () => other.destroy())
  return {
    socket,
    [Symbol.dispose]() {
      socket.destroy()
      other.destroy()
      server.close()
    },
  }
}

/** Largest number of pending bytes while 64 MiB of small replies are written. */
async function mostWaiting(output: Output, socket: Socket): Promise<number> {
  let most = 0
  for (let written = 0; written < 64 * MIB && !socket.destroyed; written += 64) {
    output.write(Buffer.alloc(64))
    most = Math.max(most, output.waiting)
    if (written % MIB === 0) await new Promise(setImmediate)
  }
  return most
}

test.each([
  { who: 'a client before login', isTrusted: false, most: 256 * KIB },
  { who: 'a client that has logged in', isTrusted: true, most: 8 * MIB },
])('$who that reads nothing is disconnected at the limit of pending bytes', async ({ isTrusted, most }) => {
  using there = await toOneWhoReadsNothing()
  const output = new Output(there.socket, BEFORE_LOGIN_BYTES)
  if (isTrusted) output.trust()
  expect(await mostWaiting(output, there.socket)).toBeLessThanOrEqual(most + 64)
  expect(there.socket.destroyed).toBe(true)
})
